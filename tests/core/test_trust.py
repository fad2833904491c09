"""A list that came with a clone runs nothing until this user has said so."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness_lib import sha256
from harness_lib.core import trust
from harness_lib.core.trust import Runs
from harness_lib.state.answers import Answers
from harness_lib.state.api import TaskCommands
from harness_lib.task import OnFailure, State, Task, Validation

REPOSITORY = Path(__file__).parents[2]
STATE = State(tasks=(Task("a", validation=Validation("make a")), Task("b", validation=Validation("make b"))))
NOTE = """
import sys
from pathlib import Path
from harness_lib.core import trust

for number in range(10):
    trust.note_at(Path(sys.argv[1]), Path(sys.argv[2]) / str(number), trust.Runs((), None))
"""


def run_by(state: State, script: bytes | None = None) -> Runs:
    return Runs(
        Answers(state, datetime.now(timezone.utc)).commands(),
        None if script is None else sha256.digest(script),
    )


def shared_at(place: Path) -> Any:
    """Return what a verb knows of a list there that machines share."""
    git = SimpleNamespace(common_dir=place)
    root = SimpleNamespace(path=place, init_script=place / "harness-init.sh")
    return SimpleNamespace(git=git, main=git, root=root, shared=True)


def is_trusted(common: Path, root: Path, state: State, *, tracked: bool, script: bytes | None = None) -> bool:
    return trust.trusted_at(common, root, run_by(state, script), is_tracked=lambda: tracked)


def test_git_is_asked_only_about_commands_that_are_not_those_of_the_note(tmp_path: Path) -> None:
    asked: list[str] = []

    def ask_git() -> bool:
        asked.append("git")
        return False

    trust.note_at(tmp_path, tmp_path, run_by(STATE))
    assert trust.trusted_at(tmp_path, tmp_path, run_by(STATE), is_tracked=ask_git)
    assert asked == []
    assert trust.trusted_at(tmp_path, tmp_path, run_by(State()), is_tracked=ask_git)
    assert asked == ["git"]


def test_a_look_at_a_shared_list_takes_back_nothing_that_the_user_allows_meanwhile(tmp_path: Path) -> None:
    ctx, both = shared_at(tmp_path), run_by(STATE)
    trust.note_at(tmp_path, tmp_path, run_by(State(tasks=STATE.tasks[:1])), mark="before")

    class Asked(Answers):
        def commands_mark(self) -> str:
            return "now"

        def commands(self) -> tuple[TaskCommands, ...]:
            trust.note_at(tmp_path, tmp_path, both, mark="later")
            return super().commands()

    assert trust.unknown(ctx, Asked(State(tasks=STATE.tasks[:1]), datetime.now(timezone.utc))) == ()
    noted = json.loads((tmp_path / "harness/trust.json").read_text())[str(tmp_path)]
    assert (noted["each"], noted["mark"]) == (sorted(both.each), "later")


def test_the_commands_of_a_shared_list_are_read_once_until_they_change(tmp_path: Path) -> None:
    ctx = shared_at(tmp_path)
    looks: list[str] = []

    class Asked(Answers):
        def commands(self) -> tuple[TaskCommands, ...]:
            looks.append(self.commands_mark())
            return super().commands()

    first, both = (Asked(State(tasks=STATE.tasks[:n]), datetime.now(timezone.utc)) for n in (1, 2))
    assert trust.unknown(ctx, first) == (STATE.tasks[0].id,)
    assert not trust.is_trusted(ctx, first)
    trust.note_at(tmp_path, tmp_path, run_by(State(tasks=STATE.tasks[:1])), mark=first.commands_mark())
    looks.clear()

    assert [trust.unknown(ctx, each) for each in (first, both, both)] == [(), *2 * [(STATE.tasks[1].id,)]]
    assert (trust.knows(ctx, STATE.tasks[0]), trust.knows(ctx, *STATE.tasks[:2])) == (True, False)
    assert trust.is_trusted(ctx, both)
    assert not trust.is_whole(ctx, both)
    assert len(looks) == 1
    assert not trust.knows(ctx, Task("c", on_failure=OnFailure("a cleanup alone runs, too")))


@pytest.mark.parametrize("tracked", [True, False])
def test_the_note_covers_the_list_it_was_made_for_and_no_other(tmp_path: Path, tracked: bool) -> None:
    assert not is_trusted(tmp_path, tmp_path / "root", STATE, tracked=tracked, script=b"set up")
    trust.note_at(tmp_path, tmp_path / "root", run_by(STATE, b"set up"))

    assert is_trusted(tmp_path, tmp_path / "root", STATE, tracked=tracked, script=b"set up")
    assert not is_trusted(tmp_path, tmp_path / "other", STATE, tracked=tracked, script=b"set up")


A, B = STATE.tasks
CHANGES = {
    "a check": (A._replace(validation=Validation("make x")), B),
    "where it runs": (A._replace(validation=Validation("make a", cwd="x")), B),
    "a cleanup": (A._replace(on_failure=OnFailure("x")), B),
    "one task more": (A, B, Task("c", validation=Validation("make c"))),
}


@pytest.mark.parametrize("changed", CHANGES.values(), ids=CHANGES)
def test_commands_that_a_pull_changed_are_asked_about(tmp_path: Path, changed: tuple[Task, ...]) -> None:
    trust.note_at(tmp_path, tmp_path, run_by(STATE))

    assert not is_trusted(tmp_path, tmp_path, State(tasks=changed), tracked=True)
    assert is_trusted(tmp_path, tmp_path, State(tasks=changed), tracked=False)


def test_a_new_init_script_is_a_change_and_progress_and_order_are_none(tmp_path: Path) -> None:
    trust.note_at(tmp_path, tmp_path, run_by(STATE))
    moved = tuple(task._replace(status="completed", title="x") for task in reversed(STATE.tasks))

    assert not is_trusted(tmp_path, tmp_path, STATE, tracked=True, script=b"")
    assert is_trusted(tmp_path, tmp_path, State(tasks=moved), tracked=True)


def test_the_note_is_private_also_where_others_could_read_it_before(tmp_path: Path) -> None:
    file = tmp_path / "harness/trust.json"
    for _ in range(2):
        trust.note_at(tmp_path, tmp_path, run_by(STATE))
        assert file.stat().st_mode & 0o777 == 0o600
        file.chmod(0o644)
    # Every harness locks the same file to write it.
    assert {path.name for path in file.parent.iterdir()} >= {"trust.json", "trust.lock"}


def test_a_note_can_be_read_by_whoever_wonders_and_by_every_harness(tmp_path: Path) -> None:
    def digest(text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()

    trust.note_at(tmp_path, Path("/b"), run_by(STATE, b"set up"))
    trust.note_at(tmp_path, Path("/a"), run_by(State()))

    commands = json.dumps([["a", "make a", None, None], ["b", "make b", None, None]])
    script = digest("set up")
    both = {"fingerprint": digest(f'[{commands}, "{script}"]')}
    none = {"fingerprint": digest("[[], null]")}
    text = (tmp_path / "harness/trust.json").read_text()
    assert json.loads(text) == {"/a": none, "/b": both}
    assert text == json.dumps({"/a": none, "/b": both}, indent=2, sort_keys=True) + "\n"
    # Earlier versions have written more.
    more = {"/b": {**both, "commands": digest(commands), "init_script": script}}
    (tmp_path / "harness/trust.json").write_text(json.dumps(more))
    assert is_trusted(tmp_path, Path("/b"), STATE, tracked=True, script=b"set up")


def test_a_note_of_another_user_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trust.note_at(tmp_path, tmp_path, run_by(STATE))
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)

    assert not is_trusted(tmp_path, tmp_path, STATE, tracked=False)


def test_a_git_directory_that_is_none_has_no_note(tmp_path: Path) -> None:
    (tmp_path / "harness").write_text("no directory", encoding="ascii")

    assert not is_trusted(tmp_path, tmp_path, STATE, tracked=False)


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '{"ROOT": true}', '{"ROOT": []}'])
def test_a_damaged_note_trusts_nothing_and_can_be_made_again(tmp_path: Path, text: str) -> None:
    file = tmp_path / "harness/trust.json"
    file.parent.mkdir()
    file.write_text(text.replace("ROOT", str(tmp_path)))

    assert not is_trusted(tmp_path, tmp_path, STATE, tracked=False)
    trust.note_at(tmp_path, tmp_path, run_by(STATE))
    assert is_trusted(tmp_path, tmp_path, STATE, tracked=True)


def test_notes_that_several_lists_make_at_once_are_all_kept(tmp_path: Path) -> None:
    roots = [tmp_path / name for name in "abc"]
    writers = [
        subprocess.Popen([sys.executable, "-c", NOTE, str(tmp_path), str(root)], cwd=REPOSITORY)
        for root in roots
    ]
    assert [writer.wait() for writer in writers] == [0, 0, 0]

    for root in roots:
        assert all(is_trusted(tmp_path, root / str(n), State(), tracked=True) for n in range(10))
