"""Which files judge an attempt is told from the command; of a project's own file only a part counts."""

from __future__ import annotations

import pytest

from harness_lib.rules import judge_parts, judges


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("pytest -q tests/test_a.py::test_b", "tests/test_a.py"),
        ("./scripts/smoke.sh", "scripts/smoke.sh"),
        ("cd x && A=1 bash 'a b.sh' --conf=conf/c.ini", "a b.sh"),
        ("bash check.sh --conf=conf/c.ini", "conf/c.ini"),
        ("timeout 60 python check.py | tee out", None),
        ("sh check.sh || sh other.sh", "other.sh"),
        ("uv run pytest tests/unit", "tests/unit"),
    ],
)
def test_what_a_check_names_judges(command: str, named: str | None) -> None:
    found = judges.of(command).named
    assert named in found if named else "check.py" not in found


@pytest.mark.parametrize(
    "command",
    [
        "grep -q Usage README.md",
        "test -f made.txt",
        "python app.py | grep -q hello",
        "ruff check src/app.py",
        "cat /etc/passwd",
        "python ../outside.py",
        "unclosed 'quote",
        "",
        "true",
    ],
)
def test_what_is_only_looked_at_does_not(command: str) -> None:
    found = judges.of(command).named
    assert not {"README.md", "made.txt", "app.py", "src/app.py", "/etc/passwd", "../outside.py"} & set(found)


@pytest.mark.parametrize(
    ("command", "config"),
    [
        ("pytest", "**/conftest.py"),
        (".venv/bin/pytest -q", "pyproject.toml"),
        ("python -m pytest", "pytest.py"),
        ("python3 -m unittest", "unittest.py"),
        ("npm test", "package.json"),
        ("npx jest", "jest.config.*"),
        ("make test", "Makefile"),
        ("cd sub && go test ./...", "go.mod"),
        ("cargo test -p api", ".cargo/config.toml"),
    ],
)
def test_a_known_runner_brings_its_configuration(command: str, config: str) -> None:
    assert config in judges.of(command).config


def test_no_runner_has_none() -> None:
    assert judges.of("test -f done") == judges.Judges()


PYPROJECT = """\
[project]
name = "x"
dependencies = ["a"]

[tool.pytest.ini_options]
addopts = "-q"

[tool.black]
line-length = 80
"""


@pytest.mark.parametrize(
    ("name", "old", "new", "changes"),
    [
        ("pyproject.toml", PYPROJECT, PYPROJECT.replace("-q", "-k none"), True),
        ("pyproject.toml", PYPROJECT, PYPROJECT.replace('["a"]', '["a", "b"]').replace("80", "90"), False),
        ("pyproject.toml", "[tool]\n", '[tool]\npytest.ini_options.addopts = "-k none"\n', True),
        ("pyproject.toml", "", 'tool.pytest.ini_options.addopts = "-k none"\n', True),
        ("pyproject.toml", "", '[tool."pytest".ini_options]\naddopts = "-k none"\n', True),
        ("sub/setup.cfg", "[metadata]\nname = x\n", "[metadata]\nname = y\n", False),
        ("setup.cfg", "", "[tool:pytest]\naddopts = -k none\n", True),
        ("tox.ini", "[pytest]\n", "[pytest]\naddopts = -k none\n", True),
        ("package.json", '{"scripts": {"test": "jest"}}', '{"scripts": {"test": "true"}}', True),
        ("package.json", '{"name": "x"}', '{"name": "x", "dependencies": {"a": "1"}}', False),
        ("package.json", '{"jest": {}}', "not JSON", True),
        ("go.mod", "module x\n", "module x\n\nrequire (\n\ta v1\n)\nrequire b v1 // indirect\n", False),
        ("go.mod", "module x\n", "module x\nreplace a => ./fake\n", True),
        ("Cargo.toml", "[package]\n", '[package]\n[dependencies]\na = "1"\n', False),
        ("Cargo.toml", "[package]\n", "[package]\n[lib]\ntest = false\n", True),
        ("Makefile", "test:\n\tpytest\n", "test:\n\ttrue\n", True),
    ],
)
def test_of_a_file_only_that_counts_which_the_runner_reads(
    name: str, old: str, new: str, *, changes: bool
) -> None:
    then, now = (judge_parts.part(name, text.encode()) for text in (old, new))
    assert (then != now) is changes
