"""The tools `grep` and `glob`: what they find, and what they never show."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness_lib.loop import discovery, trust
from harness_lib.loop.asking import Question, Said, always_about
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.stages import tool_calls
from tests.loop.conftest import Done, bodies, session_of
from tests.loop.servers.script import say, use
from tests.loop.source_files import write, write_program
from tests.loop.tools.conftest import Do


@pytest.fixture
def tree(project: Path) -> Path:
    write(
        project / "src" / "calc.py",
        "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n",
    )
    write(project / "src" / "page.ts", "export const add = 1;\n")
    write(project / "src" / "page.tsx", "// nothing\n")
    write(project / "README.md", "How to ADD.\n")
    write(project / "out" / "made.py", "add\n")
    write(project / ".gitignore", "/out/\n")
    (project / "data").write_bytes(b"add\0")
    return project


@pytest.fixture(params=["git", "no git"])
def place(request: pytest.FixtureRequest, tree: Path) -> Path:
    if request.param == "git":
        subprocess.run(["git", "init", "-q"], cwd=tree, check=True)
    else:
        (tree / "out" / "made.py").unlink()
    return tree


@pytest.mark.usefixtures("place")
def test_grep_shows_lines_as_every_grep(do: Do) -> None:
    assert (
        do("grep", pattern=r"\badd\b").text
        == "src/calc.py:1:def add(a, b):\nsrc/page.ts:1:export const add = 1;"
    )
    assert do("grep", pattern="add", ignore_case=True, files_only=True).text.split() == [
        "README.md", "src/calc.py", "src/page.ts",
    ]  # fmt: skip
    assert do("grep", pattern="def", glob="*.{py,ts}", path="src", context=1).text == (
        "src/calc.py:1:def add(a, b):\nsrc/calc.py-2-    return a + b\n--\n"
        "src/calc.py-4-\nsrc/calc.py:5:def sub(a, b):\nsrc/calc.py-6-    return a - b"
    )
    assert do("grep", pattern="def", path="src/calc.py", limit=1).text == (
        "src/calc.py:1:def add(a, b):\n... (more than 1; narrow the search, or set limit)"
    )
    assert do("grep", pattern="no such").text == "nothing was found"


@pytest.mark.usefixtures("place")
def test_glob_finds_names(do: Do) -> None:
    assert do("glob", pattern="*.py").text == "src/calc.py"
    assert do("glob", pattern="src/*.{ts,tsx}").text == "src/page.ts\nsrc/page.tsx"
    assert do("glob", pattern="**/*.md").text == "README.md"
    assert do("glob", pattern="*", path="src", limit=1).text.startswith("src/calc.py\n... (2 more")
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
    write(home / ".harness" / "settings.json", json.dumps({"permissions": {"deny": ["Read(secrets/**)"]}}))
    write(tree / ".harness" / ".auth.json", "add\n")
    write(tree / "secrets" / "key", "add\n")
    write(home / "other", "add\n")
    (tree / "link").symlink_to(home / "other")
    (tree / "way").symlink_to(home)
    subprocess.run(["git", "init", "-q"], cwd=tree, check=True)

    for shown in (do("grep", pattern="add", files_only=True).text, do("glob", pattern="*").text):
        assert not {".harness/.auth.json", "secrets/key", "link", "way/other"} & set(shown.split())
    assert "nothing was found" in do("grep", pattern="add", path="secrets").text
    assert do("grep", pattern="x", path="~/.ssh").error


def test_what_a_repository_says_to_git_runs_nothing(do: Do, tree: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tree, check=True)
    for key in ("core.fsmonitor", "core.pager", "diff.external", "core.sshCommand"):
        subprocess.run(["git", "config", key, "touch ran; false"], cwd=tree, check=True)

    assert "src/calc.py" in do("glob", pattern="*.py").text
    assert not (tree / "ran").exists()


def test_a_name_is_one_line(do: Do, project: Path) -> None:
    (project / "a\nsrc.py:1:x\x1b[2J").write_text("add\n", encoding="utf-8")

    assert len(do("glob", pattern="*").text.splitlines()) == 1
    assert "\x1b" not in do("glob", pattern="*").text


def test_outside_of_the_project_a_search_is_asked_about(done: Done, home: Path) -> None:
    write(home / "notes" / "a", "add\n")
    done(
        use("grep", pattern="add", path="~/notes"), use("glob", pattern="*"), say("Done."),
        words=("--approve", "ask", "go"),
    )  # fmt: skip
    said = [body for name, body in bodies(session_of(home)) if "result" in name]
    assert "It reads outside of the project" in said[0]
    assert "denied" not in said[1]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_cannot_be_read_is_passed_by(do: Do, tree: Path) -> None:
    (tree / "README.md").chmod(0)
    assert do("grep", pattern="add", files_only=True).text.split() == [
        "out/made.py",
        "src/calc.py",
        "src/page.ts",
    ]


# -- files that no tool reads, by whatever way, under every approval; and those that the user is asked about


SECRET = "sk-very-secret"
READER = """#!/bin/sh
case "$1" in
--schema) echo '{"name":"reader","input_schema":{"type":"object"},"annotations":{"readOnlyHint":true}}' ;;
--exec) echo "it ran" ;;
esac
"""


@pytest.fixture
def reader(run: Runtime, home: Path) -> Runtime:
    """Return the run with a foreign tool that says of itself that it only reads."""
    write_program(home / ".harness/tools/reader", READER)
    discovery.refresh(run)
    return run


@pytest.fixture
def credentials(home: Path, project: Path) -> Path:
    """Store a key as `hs auth set` does, and put links to it and to /proc into the project."""
    stored = write(home / ".harness/.auth.json", json.dumps({"openai": [{"key": SECRET}]}))
    for name in (".netrc", ".ssh/id_ed25519", ".aws/credentials"):
        write(home / name, SECRET)
    write(project / "inside/.harness/.auth.json", SECRET)
    (project / "link").symlink_to(stored)
    (project / "chain").symlink_to("link")
    (project / "environ").symlink_to("/proc/self/environ")
    (project / "source").symlink_to(home / ".harness")
    (project / "process").symlink_to("/proc/thread-self")
    return stored


WAYS = [
    "{home}/.harness/.auth.json", "~/.harness/.auth.json", "../{up}/.harness/.auth.json", "link", "chain",
    "source/.auth.json", "source/../.harness/.auth.json", "inside/.harness/.auth.json",
    "~/.netrc", "~/.ssh/id_ed25519", "~/.aws/credentials",
]  # fmt: skip
WAYS_OF_LINUX = [
    "/proc/self/environ", "/proc/thread-self/environ", "/proc/{pid}/environ", "/proc/1/environ",
    "/proc/self/task/{pid}/environ", "/proc/self/mem", "/proc/self/fd/0", "/dev/fd/0", "/dev/stdin",
    "/etc/../proc/self/environ", "environ", "process/environ", "process/../../environ",
    "/proc/self/root/proc/self/environ", "/proc/self/root{home}/.harness/.auth.json", "/proc/self/cwd/link",
]  # fmt: skip


@pytest.mark.parametrize("way", [*WAYS, *(WAYS_OF_LINUX if Path("/proc/self").exists() else [])])
def test_no_tool_reads_credentials_or_a_process(
    do: Do, reader: Runtime, home: Path, project: Path, credentials: Path, way: str
) -> None:
    path = way.format(home=home, pid=os.getpid(), up=os.path.relpath(home, project.parent))
    reader.asker = lambda _: Said(allowed=True)
    before = credentials.read_text(encoding="utf-8")
    changes: dict[str, dict[str, Any]] = {
        "read_file": {},
        "write_file": {"content": "x"},
        "replace": {"old": "s", "new": "x", "all": True},
        "edit_file": {"edits": [{"type": "append_file", "content": "x"}]},
    }

    for mode in trust.SETTINGS["approve"][1]:
        reader.env["HARNESS_APPROVE"] = mode
        for tool in ("read_file", "reader"):
            verdict = tool_calls.decide(reader, {"id": "1", "name": tool, "input": {"path": path}})
            assert (verdict.decision, "no tool reads it" in verdict.reason) == ("deny", True)
    for tool, more in changes.items():
        result = do(tool, path=path, **more)
        assert result.error
        assert "no tool reads it" in result.text
        assert SECRET not in result.text
    assert credentials.read_text(encoding="utf-8") == before


@pytest.mark.parametrize(("mode", "expected"), [("ask", "asked"), ("read-only", "asked"), ("auto", "ran")])
def test_what_reads_outside_of_the_project_is_asked_about(
    reader: Runtime, home: Path, project: Path, mode: str, expected: str
) -> None:
    write(home / ".harness/skills/cook/SKILL.md", "---\nname: cook\ndescription: Cooks\n---\nBoil.\n")
    write(home / ".harness/skills/cook/references/salt.md", "salt")
    outside, inside = write(home / "notes" / "diary", "dear"), write(project / "src" / "a", "a")
    (project / "away").symlink_to(outside)
    assert reader.session is not None
    kept = write(reader.session.directory / "output" / "0001.txt", "long")
    asked: list[Question] = []

    def person(question: Question) -> Said:
        asked.append(question)
        return Said(allowed=False)

    reader.asker = person
    reader.env["HARNESS_APPROVE"] = mode

    def is_asked(tool: str, **tool_input: object) -> bool:
        before = len(asked)
        tool_calls.decide(reader, {"id": "1", "name": tool, "input": tool_input})
        return len(asked) > before

    for path in (inside, kept, home / ".harness/skills/cook/references/salt.md", "src/a", "not there"):
        assert not is_asked("read_file", path=str(path))
    away = [
        is_asked("read_file", path=path) for path in (str(outside), "away", "~/notes/diary", "../nowhere")
    ]
    away += [
        is_asked("reader", files=["src/a", str(outside)]),
        is_asked("reader", deep={"uri": str(outside)}),
    ]
    assert not is_asked("reader", pattern="/a.*b/", text="no path\nof any kind")
    assert away == [expected == "asked"] * 6
    if asked:
        assert "It reads outside of the project: " in asked[0].reason
        assert always_about(asked[0]) == f"read_file in {outside.parent}"


def test_always_for_an_edit_in_the_project_is_none_outside_of_it(
    run: Runtime, home: Path, project: Path
) -> None:
    asked: list[str] = []

    def person(question: Question) -> Said:
        asked.append(always_about(question))
        return Said(allowed=True, always=True)

    run.asker, run.env["HARNESS_APPROVE"] = person, "ask"
    for path in ("a", "b", f"{home}/.bashrc", f"{home}/.profile", "~unknown-user/x"):
        tool_calls.decide(run, {"id": "1", "name": "write_file", "input": {"path": path, "content": "x"}})

    assert asked == ["write_file", f"write_file in {home}"]
    assert str(project) not in str(asked)
