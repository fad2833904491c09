"""A verb loads what its reply needs: every start of it pays for each module."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from harness_lib.cli import lazily
from tests.cli.conftest import EXAMPLES, filled_project
from tests.cli.loading import executed
from tests.verbs.project import Project

# Those of the list in a database: its driver would be fetched first.
DATABASE = {"psycopg", "harness_lib.state.pgstore", "harness_lib.state.mirrored"}
DEAR = {"asyncio", "filelock", "jsonschema", "rich", "tomlkit", "uuid"} | DATABASE
# They bring along what reads source code, and the whole of OpenSSL, each longer than the verb works.
LONG = {"dataclasses", "inspect", "_hashlib"}
if sys.version_info >= (3, 14):
    # argparse brings the first two along.
    LONG = {"_hashlib"}
# What argparse or a question to git would bring along.
PACKING = {"shutil", "tempfile"}
GIT = {"harness_lib.system.git.repository", "subprocess"}
CHECKS = {"harness_lib.attempts.check", "harness_lib.system.processes.runner"}
MERGING = {
    "harness_lib.attempts.merge_queue",
    "harness_lib.attempts.target_branch",
    "harness_lib.system.git.merge",
}

LOOKING = {
    "log": GIT | PACKING | CHECKS | MERGING,
    "graph": PACKING | CHECKS | MERGING,
    "status": PACKING | CHECKS | MERGING,
    "check": MERGING,
    "show": MERGING,
}


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Project]:
    """Make a project whose list is just as harness has written it; a copy would be looked through."""
    made = filled_project(tmp_path / "repo")
    yield made
    made.close()


@pytest.mark.parametrize("name", LOOKING)
def test_what_only_looks_waits_for_no_lock_and_draws_nothing(name: str, filled: Project) -> None:
    assert executed(filled.top, *EXAMPLES[name]) & (DEAR | LONG | LOOKING[name]) == set()


@pytest.mark.parametrize(("name", "more"), [("add", CHECKS), ("note", GIT | CHECKS), ("edit", set())])
def test_what_changes_the_list_loads_nothing_that_waits(name: str, more: set[str], filled: Project) -> None:
    modules = executed(filled.top, *EXAMPLES[name])
    assert "harness_lib.system.state_lock" in modules
    assert modules & (DEAR | MERGING | more) == set()


@pytest.mark.parametrize("action", ["status", "check"])
def test_of_a_list_in_a_file_nothing_of_a_database_is_loaded(action: str, filled: Project) -> None:
    modules = executed(filled.top, "store", action, code=2)
    assert "harness_lib.verbs.store" in modules
    assert modules & {"psycopg", "harness_lib.state.pgstore"} == set()


def test_the_version_needs_no_package(filled: Project) -> None:
    assert executed(filled.top, "--version") & (DEAR | GIT | PACKING | CHECKS) == set()


def test_what_a_verb_could_need_is_loaded_only_once_it_does(filled: Project) -> None:
    """Of `start` nothing is loaded that packs or quotes for a shell."""
    assert executed(filled.top, "start") & {"bz2", "lzma", "shlex", "shutil"} == set()
    modules = executed(filled.top, "claim")
    assert "harness_lib.attempts.claim" in modules
    assert modules & DEAR == set()
    for name in ("requeue", "merge_queue", "pending_merges"):
        assert find_spec(f"harness_lib.attempts.{name}")
        assert f"harness_lib.attempts.{name}" not in modules


def test_finish_loads_at_once_what_may_follow_its_check_and_nothing_that_packs(filled: Project) -> None:
    """Its check may replace our folder, and not the standard library."""
    assert executed(filled.top, "claim")
    modules = executed(filled.top, "finish")
    assert {"harness_lib.attempts.rollback", "harness_lib.system.git.restore"} <= modules
    assert modules & (lazily.RUN | lazily.SHARED) == set()
    assert modules & {"bz2", "lzma", "random", "shutil", "tempfile"} == set()


def test_what_has_threads_is_loaded_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    before = list(sys.meta_path)
    monkeypatch.setattr(sys, "meta_path", list(before))
    for argv in (["run", "-j", "2"], ["demo"], ["status", "--watch"]):
        lazily.install(argv)
        assert sys.meta_path == before
    lazily.install(["status"])
    assert sys.meta_path[1:] == before


@pytest.mark.parametrize(("argv", "collects"), [(["--version"], False), (["--version", "--watch"], True)])
def test_only_what_goes_on_for_hours_looks_for_garbage(argv: list[str], collects: bool) -> None:
    """The launcher switches the collector off before it loads anything."""
    program = (
        "import gc, sys; from harness_lib.cli import main; gc.disable(); "
        "main.main = lambda argv: print(gc.isenabled()) or 0; main.entry()"
    )
    done = subprocess.run([sys.executable, "-c", program, *argv], capture_output=True, text=True, check=True)
    assert done.stdout == f"{collects}\n"


def test_an_interrupt_while_a_module_loads_is_one(tmp_path: Path) -> None:
    """Python forgets what happens while it looks at a module that is imported for the second time."""
    (tmp_path / "interrupted.py").write_text("raise KeyboardInterrupt\n")
    code = (
        "import harness_lib\n"
        f"harness_lib.__path__.append({str(tmp_path)!r})\n"
        "from harness_lib.cli import lazily\n"
        "lazily.install(['status'])\n"
        "from harness_lib import interrupted\n"
        "try:\n    from harness_lib.interrupted import something\n"
        "except BaseException as error:\n    print(type(error).__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "KeyboardInterrupt\n"
