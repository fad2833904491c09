"""What docs/architecture.md says of files is so: its picture is that of the imports, its walks are walked."""

from __future__ import annotations

import ast
import json
import os
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from docs import rooms
from tests.conftest import CHECKOUT, Harness
from tests.docs import called
from tests.run_to_end import run_to_end

PAGE = (CHECKOUT / "docs/architecture.md").read_text()
WALKS = ["A Stop hook", "`finish`", "A task of `run`", "A broken list"]
LIBRARY = CHECKOUT / "harness_lib"
WORKER = {"HARNESS_WORKER_ID": "me"}


def walk(title: str) -> list[str]:
    """Return the files of a walk: those that its steps begin with, in order."""
    part = PAGE.split(f"\n### {title}\n")[1].split("\n## ")[0].split("\n### ")[0]
    return re.findall(r"^\d+\. `([\w/-]+\.py)`", part, re.MULTILINE)


def test_the_picture_is_that_of_the_imports() -> None:
    assert rooms.renewed(PAGE) == PAGE, "type: python docs/rooms.py"


def test_every_file_that_it_names_is_there() -> None:
    named = set(re.findall(r"`((?:\w+/)+[\w-]+\.py)`", PAGE))

    assert [
        name for name in sorted(named) if not ((LIBRARY / name).exists() or (CHECKOUT / name).exists())
    ] == []
    assert len(named) > len(WALKS) * 10


def test_the_steps_of_a_walk_are_numbered_and_each_file_is_new() -> None:
    for title in WALKS:
        files = walk(title)
        assert len(files) == len(set(files)) > 9, title


def test_each_file_of_the_walk_through_a_run_is_imported_by_one_before_it() -> None:
    first, *others = walk("A task of `run`")
    reached = imported(first)
    for name in others:
        assert name in reached, f"no file before {name} imports it"
        reached |= imported(name)


def imported(name: str) -> set[str]:
    """Return the files of harness_lib that one imports, or has another process import."""
    text = (LIBRARY / name).read_text()
    modules = set(re.findall(r'"from (harness_lib[\w.]+) import', text))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    files = {f"{module.partition('.')[2].replace('.', '/')}.py" for module in modules if "." in module}
    packages = {f"{file[:-3]}/__init__.py" for file in files} - {name}
    inside = {each for package in packages if (LIBRARY / package).exists() for each in imported(package)}
    return {file for file in files if (LIBRARY / file).exists()} | inside


def walked(cwd: Path, *words: str, payload: str = "") -> tuple[str, list[str]]:
    """Run a program of ours; return what it answered, and the files that worked, in order."""
    command = [sys.executable, called.__file__, *words]
    done = run_to_end(command, cwd=cwd, env={**os.environ, **WORKER}, stdin=payload)
    lines = done.stderr.splitlines()
    assert called.MARK in done.stderr, done.stderr
    return done.stdout, [line.removeprefix(called.MARK) for line in lines if line.startswith(called.MARK)]


def assert_in_order(title: str, worked: list[str]) -> None:
    """Each step of the walk comes after the one before it."""
    left = iter(worked)
    for name in walk(title):
        if not name.startswith("hooks/"):
            assert name in left, (
                f"{name} does nothing after the step before it: {list(dict.fromkeys(worked))}"
            )


@pytest.mark.release
@pytest.mark.parametrize("broken", [False, True])
def test_the_walks_are_walked_as_told(repo: Path, harness: Harness, *, broken: bool) -> None:
    """A Stop hook and the end of the one task, or a list that was broken and is put back."""
    for words in (("init",), ("add", "One", "--validate", "test -f made"), ("start",), ("claim",)):
        assert harness(*words, env=WORKER).code == 0
    (repo / "made").write_text("")
    if broken:
        (repo / "harness-tasks.json").write_text('{"tasks": [')
        said, worked = walked(repo, "harness", "start")
        assert "task-001" in said
        assert json.loads((repo / "harness-tasks.json").read_text())["tasks"]
        assert_in_order("A broken list", worked)
        return

    payload = json.dumps({"hook_event_name": "Stop", "cwd": str(repo), "session_id": "s"})
    said, worked = walked(repo, str(CHECKOUT / walk("A Stop hook")[0]), payload=payload)
    assert json.loads(said)["decision"] == "block"
    assert_in_order("A Stop hook", worked)
    said, worked = walked(repo, "harness", "finish")
    assert "task-001 is completed" in said
    assert_in_order("`finish`", worked)


def test_no_room_is_more_than_a_fifth_of_the_library() -> None:
    lines: Counter[str] = Counter()
    for path in LIBRARY.rglob("*.py"):
        lines[path.relative_to(LIBRARY).parts[0]] += len(path.read_bytes().splitlines())

    assert {room: count for room, count in lines.items() if count * 5 > lines.total()} == {}


def test_every_room_of_the_library_has_its_room_of_tests() -> None:
    rooms_of = {path.parent.name for path in LIBRARY.glob("*/__init__.py")}
    tested = {
        path.relative_to(CHECKOUT / "tests").parts[0] for path in (CHECKOUT / "tests").rglob("test_*.py")
    }

    assert len(rooms_of) > 10
    assert rooms_of - tested == set()
    inside = {path.parent.name for path in (LIBRARY / "hs").glob("*/__init__.py")}
    assert inside >= {path.parent.name for path in (CHECKOUT / "tests/hs").glob("*/test_*.py")}
