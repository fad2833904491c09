"""Which files judge an attempt is told from the command; of a project's own file only a part counts."""

from __future__ import annotations

import pytest

from harness_lib.rules import input_files


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("pytest -q tests/test_a.py::test_b", "tests/test_a.py"),
        ("./scripts/smoke.sh", "scripts/smoke.sh"),
        ("uv run pytest tests/unit", "run pytest tests/unit"),
        ("bash check.sh --conf=conf/c.ini", "check.sh conf/c.ini"),
        ("sh check.sh || sh other.sh", "check.sh other.sh"),
        ("true&&sh check.sh;sh b.sh", "check.sh b.sh"),
        ("sh scripts/a+b.sh", "scripts/a+b.sh"),
        ("python -X dev check.py", "dev check.py"),
        ("python check.py --sep=- --set=a=b.ini", "check.py a=b.ini"),
        ("bash /etc/profile check.sh", "check.sh"),
        ("bash toolsX/ X.sh", "toolsX X.sh"),
        # What a program is told to do is no program.
        ("python check.py --only test", "check.py test"),
        # Only what goes into a program that looks is looked at.
        ("python check.py && grep -q x out", "check.py"),
        ("cat a | python check.py | bash report.sh", "check.py report.sh"),
        ("timeout 60 python check.py | tee out", ""),
        ("python check.py |", "check.py"),
        # What is only looked at, or lies elsewhere, does not judge.
        ("grep -q Usage README.md", ""),
        ("test -f made.txt", ""),
        ("python app.py | grep -q hello", ""),
        ("ruff check src/app.py", ""),
        ("cat /etc/passwd", ""),
        ("python ../outside.py", ""),
        ("unclosed 'quote", ""),
        ("", ""),
        ("true", ""),
    ],
)
def test_what_a_check_names_judges_and_nothing_else_of_it_does(command: str, named: str) -> None:
    assert input_files.of(command).named == tuple(named.split())


def test_settings_and_quotes_of_the_shell_are_understood() -> None:
    assert input_files.of("cd x && A=1 b=2 bash 'a b.sh'").named == ("a b.sh",)


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
    assert config in input_files.of(command).config


def test_each_of_several_runners_brings_its_configuration_and_its_tests() -> None:
    several = input_files.of("pytest -q && npx jest")

    assert {"pytest.ini", "jest.config.*"} <= set(several.config)
    assert {"**/test_*.py", "**/*.test.*"} <= set(several.tests)


def test_a_script_has_the_inputs_of_each_of_its_lines() -> None:
    script = input_files.of_script("check.sh", "pytest -q\n# sh no.sh\nsh other.sh\n")

    assert (script.named, set(script.programs)) == (("other.sh",), {"pytest", "sh"})
    assert (script.tests, script.config) == input_files.of("pytest -q")[2:0:-1]


def test_no_runner_has_none() -> None:
    assert input_files.of("test -f done") == input_files.InputFiles(programs=("test",))


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
        # How it is written: comments, empty lines, what trails, the order of keys.
        ("tox.ini", "[pytest]\na = 1\n", "[pytest]\n\n# b\n  # c\na = 1  \n", False),
        ("package.json", '{"scripts": {"a": "1", "b": "2"}}', '{"scripts": {"b": "2", "a": "1"}}', False),
        ("go.mod", "replace a => ./b\n", "replace a => ./b // for now\n", False),
        # Which section a line stands in.
        ("tox.ini", "[pytest]\na = 1\n[mypy]\n", "[pytest]\n[mypy]\na = 1\n", True),
        ("pyproject.toml", "", "[tool.'pytest'.ini_options]\naddopts = '-k none'\n", True),
    ],
)
def test_of_a_file_that_counts_which_a_runner_reads(name: str, old: str, new: str, *, changes: bool) -> None:
    before, after = (input_files.part(name, text.encode()) for text in (old, new))
    assert (before != after) is changes


@pytest.mark.parametrize("name", ["package.json", "sub/pyproject.toml", "setup.cfg", "go.mod"])
def test_a_file_of_which_only_a_part_counts_may_hold_nothing_that_does(name: str) -> None:
    assert input_files.is_partial(name)
    assert input_files.part(name, b"{}") is None or not name.endswith(".json")
    assert input_files.part(name, b"") is None or name.endswith(".json")


@pytest.mark.parametrize("name", ["Makefile", "tests/test_a.py", "package.json/Makefile"])
def test_any_other_file_counts_whole(name: str) -> None:
    assert not input_files.is_partial(name)
    assert input_files.part(name, b"\0 any") == b"\0 any"


def test_a_file_in_another_encoding_is_read_all_the_same() -> None:
    assert input_files.part("setup.cfg", b"[tool:pytest]\naddopts = \xff\n") == (
        b"[tool:pytest]\naddopts = \xff"
    )
