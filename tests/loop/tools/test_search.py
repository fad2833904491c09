"""The tools `grep` and `glob`: what they find, and what they never show."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from harness_lib.loop.runtime import Runtime
from tests.loop.source_files import write
from tests.loop.tools.conftest import Do
from tests.system.git.gitrepo import sh


@pytest.fixture
def tree(project: Path) -> Path:
    write(project / "src/calc.py", "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n")
    write(project / "src/page.ts", "export const add = 1;\n")
    write(project / "src/page.tsx", "// nothing\n")
    write(project / "README.md", "How to ADD.\n")
    write(project / "out/made.py", "add\n")
    write(project / ".gitignore", "/out/\n")
    (project / "data").write_bytes(b"add\0")
    return project


@pytest.fixture(params=["git", "no git"])
def place(request: pytest.FixtureRequest, tree: Path) -> Path:
    if request.param == "git":
        sh(tree, "init", "-q")
    else:
        (tree / "out/made.py").unlink()
    return tree


@pytest.mark.usefixtures("place")
def test_grep_shows_lines_as_every_grep(do: Do) -> None:
    found = do("grep", pattern=r"\badd\b").text
    assert found == "src/calc.py:1:def add(a, b):\nsrc/page.ts:1:export const add = 1;"
    assert do("grep", pattern="(?i)add", glob="*.md").text == "README.md:1:How to ADD."
    assert do("grep", pattern="def", glob="*.{py,ts}", path="src", context=1).text == (
        "src/calc.py:1:def add(a, b):\nsrc/calc.py-2-    return a + b\n--\n"
        "src/calc.py-4-\nsrc/calc.py:5:def sub(a, b):\nsrc/calc.py-6-    return a - b"
    )
    assert do("grep", pattern="no such").text == "nothing was found"


def test_of_many_the_first_are_shown(do: Do, project: Path) -> None:
    write(project / "long", "x\n" * 251)
    assert do("grep", pattern="x").text.endswith("\nlong:250:x\n... (more than 250; narrow the search)")
    for number in range(250):
        write(project / f"f{number}", "")
    assert do("glob", pattern="*").text.endswith("\n… and 1 more; narrow the pattern")


@pytest.mark.usefixtures("place")
def test_glob_finds_names(do: Do) -> None:
    assert do("glob", pattern="*.py").text == "src/calc.py"
    assert do("glob", pattern="src/*.{ts,tsx}").text == "src/page.ts\nsrc/page.tsx"
    assert do("glob", pattern="**/*.md").text == "README.md"
    assert do("glob", pattern="*", path="src").text.split() == ["src/calc.py", "src/page.ts", "src/page.tsx"]
    assert do("glob", pattern="!x").text == "nothing was found"


@pytest.mark.usefixtures("tree")
def test_what_cannot_be_searched_is_said(do: Do) -> None:
    for tool, arguments in (
        ("grep", {"pattern": "("}),
        ("grep", {"pattern": "a{99999999999999}"}),
        ("grep", {"pattern": "x", "path": "no-such"}),
        ("grep", {"pattern": "x", "glob": "../*"}),
        ("glob", {"pattern": "/etc/*"}),
        ("glob", {"pattern": "~/*"}),
        ("glob", {"pattern": "a/../../*"}),
        ("glob", {"pattern": "{a,b}" * 20}),
        ("glob", {}),
    ):
        assert do(tool, **arguments).error, arguments


def test_a_pattern_that_takes_for_ever_is_ended(run: Runtime, do: Do, project: Path) -> None:
    write(project / "long", "a" * 5000 + "\n")
    run.env["HARNESS_TOOL_TIMEOUT"] = "1"
    assert "took more than 1 seconds" in do("grep", pattern="(a*)*b").text


def test_no_secret_is_found_and_no_link_followed(do: Do, home: Path, tree: Path) -> None:
    write("settings.json", json.dumps({"permissions": {"deny": ["Read(secrets/**)"]}}))
    write(tree / ".harness/.auth.json", "add\n")
    write(tree / "secrets/key", "add\n")
    write(home / "other", "add\n")
    (tree / "link").symlink_to(home / "other")
    (tree / "way").symlink_to(home)
    sh(tree, "init", "-q")

    for shown in (do("grep", pattern="add").text, do("glob", pattern="*").text):
        names = {line.partition(":")[0] for line in shown.splitlines()}
        assert not {".harness/.auth.json", "secrets/key", "link", "way/other"} & names
    assert "nothing was found" in do("grep", pattern="add", path="secrets").text
    assert do("grep", pattern="x", path="~/.ssh").error


def test_a_directory_that_has_become_a_link_shows_no_secret(do: Do, home: Path, project: Path) -> None:
    """Git lists what it tracks there; the file behind the link is a regular one."""
    write(home / ".ssh/id", "here\n")
    write(home / "elsewhere/id", "here\n")
    for name in ("open", "closed", "linked"):
        write(project / name / "id", "here\n")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        sh(project, *words)
    for name, target in (("closed", home / ".ssh"), ("linked", home / "elsewhere")):
        shutil.rmtree(project / name)
        (project / name).symlink_to(target)

    assert "closed" not in do("grep", pattern="here").text
    assert "open/id" in do("glob", pattern="id").text


def test_what_a_repository_says_to_git_runs_nothing(do: Do, tree: Path) -> None:
    sh(tree, "init", "-q")
    for key in ("core.fsmonitor", "core.pager", "diff.external", "core.sshCommand"):
        sh(tree, "config", key, "touch ran; false")

    assert "src/calc.py" in do("glob", pattern="*.py").text
    assert not (tree / "ran").exists()


def test_an_odd_name_is_one_line_and_its_file_is_searched_too(do: Do, project: Path) -> None:
    for name in ("a\nsrc.py:1:x\x1b[2J", "\x1b[2Jthree", os.fsdecode(b"f\xfcnf")):
        write(project / name, "here\n")
    found = do("grep", pattern="here").text.splitlines()
    names = [r"\x1b[2Jthree", r"a\nsrc.py:1:x\x1b[2J", r"f\udcfcnf"]
    assert found == [f"{name}:1:here" for name in names]
    assert do("glob", pattern="*").text.splitlines() == names


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_cannot_be_read_is_passed_by(do: Do, tree: Path) -> None:
    (tree / "README.md").chmod(0)
    names = [line.partition(":")[0] for line in do("grep", pattern="(?i)add").text.splitlines()]
    assert names == ["out/made.py", "src/calc.py", "src/page.ts"]
