"""A whole visit where a session begins, forks or ends: whose list it is, and which notes stay."""

from __future__ import annotations

import json

import pytest

from harness_lib.system.place import session_notes
from harness_lib.system.place.roots import Root
from harness_lib.task import Session, Task
from tests.hookio.visits import BELL, ME, OTHER, SESSION, Heard, Visit, keep, kept, make, note


@pytest.mark.parametrize(
    ("source", "blocks"), [("startup", 0), ("resume", 0), ("new", 0), ("compact", 1), ("clear", 1)]
)
def test_only_whoever_comes_back_is_counted_anew(root: Root, visit: Visit, source: str, blocks: int) -> None:
    make(root, Task("a"))
    keep(root, f"{ME} {BELL}")
    keep(root, f"{OTHER} {BELL}")

    visit("SessionStart", source=source)

    assert (kept(root).blocks, kept(root, f"{OTHER} {BELL}").blocks) == (blocks, 1)


def begun(heard: Heard) -> str:
    said = json.loads(heard.out)["hookSpecificOutput"]
    assert said["hookEventName"] == "SessionStart"
    return str(said["additionalContext"])


def test_whoever_begins_hears_whose_list_it_is(root: Root, visit: Visit) -> None:
    other = Session(4, "w4", "elsewhere", agent_session_id=OTHER, started_at="2999-01-01T00:00:00Z")
    make(root, Task("a"), sessions=(SESSION, other))

    assert f"there is a task list in {root.path}." in begun(visit("SessionStart"))
    assert "This agent works on it in session 3." in begun(visit("SessionStart"))
    assert 'Another agent works on it ("me", "w4")' in begun(visit("SessionStart", session_id="id-new"))


def test_a_fork_is_not_its_parent(root: Root, visit: Visit) -> None:
    nameless = Session(3, "me", "host", started_at="2000-01-01T00:00:00Z")
    make(root, Task("a", status="in_progress", claimed_by="w"), sessions=(nameless,), mode="concurrent")
    env = {"HARNESS_WORKER_ID": "me"}

    assert "This agent works on it in session 3." in begun(visit("SessionStart", env=env, source="resume"))
    assert "its agent is gone" in begun(visit("SessionStart", env=env, source="fork", session_id="id-fork"))
    assert "its agent is gone" in begun(visit("SessionStart", env=env, source="fork", session_id=None))


def test_a_fork_that_has_opened_a_session_works_in_it(root: Root, visit: Visit) -> None:
    make(root, Task("a"), sessions=(Session(4, "f", "host", agent_session_id="id-fork"),))

    said = begun(visit("SessionStart", source="fork", session_id="id-fork"))

    assert "This agent works on it in session 4." in said


def test_a_fork_holds_what_it_has_claimed_under_its_own_id(root: Root, visit: Visit) -> None:
    forked = Session(4, "id-fork", "host", agent_session_id="id-fork")
    held = Task("a", status="in_progress", claimed_by="id-fork")
    make(root, held, sessions=(SESSION, forked), mode="concurrent")

    assert "You hold a" in begun(visit("SessionStart", source="fork", session_id="id-fork"))


def test_whoever_begins_again_has_not_ended(root: Root, visit: Visit) -> None:
    make(root, Task("a"))
    for session_id in (ME, OTHER):
        session_notes.write(str(note(root, "ended", session_id)), b"")

    visit("SessionStart")
    visit("SessionStart", session_id=None)

    assert not note(root, "ended").exists()
    assert note(root, "ended", OTHER).exists()


def test_the_end_of_a_session_is_noted_with_why_and_its_notes_go(root: Root, visit: Visit) -> None:
    make(root, Task("a"))
    keep(root, f"{ME} {BELL}")
    session_notes.write(str(note(root, "beats")), b"")

    assert visit("SessionEnd", reason="clear") == Heard(0, "", "")

    assert note(root, "ended").read_bytes() == b"clear"
    assert kept(root).blocks == 0
    assert not note(root, "beats").exists()


def test_the_end_of_a_session_that_does_not_work_here_is_not_noted(root: Root, visit: Visit) -> None:
    make(root, Task("a"), sessions=(SESSION, Session(4, "w4", "host")))

    visit("SessionEnd", session_id=OTHER, env={"HARNESS_WORKER_ID": "w4"})
    visit("SessionEnd", session_id=None)

    assert not (root.path / ".harness" / "ended").exists()
