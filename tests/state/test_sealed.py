"""Nobody above the store has its list, opens its files or knows which kind of store it is."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

LIBRARY = Path(__file__).parents[2] / "harness_lib"
BELOW = ("hs", "loop", "records", "rules", "state", "system", "agents")
# Where a kind of store is chosen, and the verb that moves a list from one to the other.
CHOOSING = {"core/context.py", "verbs/store.py"}
# Whoever may know what a file is called, and what for. Hooks decide from the summary without any module of
# the store, as each would cost them more than their work; they look for the list, switch themselves off, and
# keep agents from writing to it.
HOOKS = {
    "hookio/entry.py": 1,
    "hookio/facts.py": 2,
    "hookio/policy.py": 3,
    "hookio/handler.py": 1,
}
# The message about a list that was not found.
NAMING = {"core/context.py": 1}
# Whose `.tasks` are no list's: those of a plan, a drawing, a command, an answer.
OF_THEIR_OWN = {
    ("core/planned.py", "plan"),
    ("core/planned.py", "read.plan"),
    ("core/stops.py", "found"),
    ("core/trust.py", "self"),
    ("runs/next_step.py", "questions.ahead()"),
    ("verbs/export.py", "read.plan"),
    ("verbs/graph.py", "drawing"),
    ("verbs/import_.py", "plan"),
    ("verbs/import_.py", "read.plan"),
    ("verbs/trust.py", "each"),
}

FILES = {"state", "backup", "log", "enable_flag", "summary", "lock_file", "generations"}
CONSTANTS = {"STATE_FILE", "BACKUP_FILE", "LOG_FILE", "ENABLE_FLAG", "GENERATIONS"}
NAMES = re.compile(r"harness-tasks\.json$|harness-progress\.txt$|\.harness-active$|(board|budget)-")


@cache
def modules() -> list[tuple[str, ast.Module]]:
    names = [(path.relative_to(LIBRARY).as_posix(), path) for path in sorted(LIBRARY.rglob("*.py"))]
    above = [each for each in names if each[0].split("/")[0] not in (*BELOW, "task.py")]
    return [(name, ast.parse(path.read_text())) for name, path in above]


def imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)


def owners_of_tasks(tree: ast.Module) -> Iterator[str]:
    """Yield of what the attribute `tasks` is used, where it is not the question of that name."""
    asked = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "tasks" and id(node) not in asked:
            yield ast.unparse(node.value)


def names_a_file(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        of_root = isinstance(node.value, ast.Name | ast.Attribute) and ast.unparse(node.value).endswith(
            "root"
        )
        return (of_root and node.attr in FILES) or node.attr in CONSTANTS
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(NAMES.match(node.value))


def test_nobody_above_the_store_has_the_list_to_walk_through() -> None:
    """With no `State` at hand there are no `.tasks`; mypy holds what `ctx.store` gives to `Questions`."""
    has_it = {name for name, tree in modules() if "State" in {each for _, each in imported(tree)}}
    assert has_it == set()
    walks = {(name, owner) for name, tree in modules() for owner in owners_of_tasks(tree)}
    assert walks == OF_THEIR_OWN


def test_nobody_above_the_store_knows_its_kind() -> None:
    """These modules keep the list in files; a hook reads what somebody else wrote, always a file."""
    files = {f"harness_lib.state.{name}" for name in ("answers", "load", "publishing", "store", "upkeep")}
    database = "harness_lib.state.pgstore"
    knowing = {
        name
        for name, tree in modules()
        for module, each in imported(tree)
        if files & {module, f"{module}.{each}"} or module.startswith(database)
    }
    assert knowing == {*CHOOSING, "hookio/facts.py"}


def test_nobody_above_the_store_names_its_files() -> None:
    named = Counter(name for name, tree in modules() for node in ast.walk(tree) if names_a_file(node))
    assert dict(named) == {**HOOKS, **NAMING}


def test_the_file_of_the_list_is_told_to_people_and_opened_by_nobody() -> None:
    """What is named by the store is only shown, asked for its name, or given to git."""
    opening = {
        "open",
        "read_bytes",
        "read_text",
        "stat",
        "exists",
        "is_file",
        "write_bytes",
        "write_text",
        "unlink",
    }
    for name, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
                file = node.value.attr in ("list_file", "log_file", "backup_file")
                assert not (file and node.attr in opening), f"{name}:{node.lineno}"


# -- what hooks read the list with needs nothing but the standard library


REPOSITORY = Path(__file__).parents[2]
PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); import harness_lib.state.{name}; print(*sys.modules)"


def loaded(name: str) -> set[str]:
    """Return what is loaded after importing a room of ours the way a hook does."""
    command = [sys.executable, "-I", "-S", "-c", PROGRAM.format(name=name), str(REPOSITORY)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("name", ["codec", "load", "journal", "summary"])
def test_reading_needs_the_standard_library_only(name: str) -> None:
    ours = {module for module in loaded(name) if module.partition(".")[0] == "harness_lib"}

    assert f"harness_lib.state.{name}" in ours


def test_a_summary_is_read_without_the_rules_and_the_codec() -> None:
    assert loaded("summary") & {"harness_lib.rules.selection", "harness_lib.state.codec"} == set()
