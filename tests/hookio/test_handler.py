"""Any visit, in this process: which events are ours, in whose words, how thoroughly the list is read."""

from __future__ import annotations

import json

import pytest

from harness_lib.hookio import facts, handler
from harness_lib.system.place.roots import Root
from harness_lib.task import Session, Task
from tests.hookio.visits import ME, Visit, make, note


@pytest.mark.parametrize("said", [{"hook_event_name": "beforeSubmitPrompt"}, {"hook_event_name": "x"}])
def test_an_event_that_is_not_ours_is_answered_with_nothing(root: Root, said: dict[str, object]) -> None:
    make(root, Task("a"))

    data = json.dumps({"session_id": ME, **said}).encode()

    assert handler.run("Stop", [], data, str(root.path), {}) == 0
    assert not (root.path / ".harness" / "stops").exists()


def test_each_host_hears_it_in_its_own_words(root: Root, visit: Visit) -> None:
    make(root, Task("a"))

    kimi = visit("Stop", "kimi")

    assert (kimi.code, kimi.out) == (2, "")
    assert kimi.err.startswith("harness: 0 of 1 tasks are completed")
    assert set(json.loads(visit("Stop", env={"HARNESS_HOST": "cursor"}).out)) == {"followup_message"}


def test_a_session_in_a_sandbox_leaves_a_sign_at_every_visit(root: Root, visit: Visit) -> None:
    outside = Session(3, "me", "host", pid=1, pid_started="x", boot_id="boot", agent_session_id=ME)
    make(root, Task("a"), sessions=(outside,))
    visit("Stop")
    assert not note(root, "seen").exists()

    make(root, Task("a"))
    visit("Stop")
    assert note(root, "seen").exists()


@pytest.mark.parametrize(
    ("event", "thorough"),
    [
        ("Stop", True),
        ("SubagentStop", True),
        ("TeammateIdle", True),
        ("SessionStart", True),
        ("SubagentStart", False),
        ("SessionEnd", False),
        ("PostToolUse", False),
    ],
)
def test_the_schema_is_asked_where_somebody_is_let_go_or_told_how_things_stand(
    root: Root, visit: Visit, monkeypatch: pytest.MonkeyPatch, event: str, *, thorough: bool
) -> None:
    asked: list[bool] = []

    def looks(*_args: object, thorough: bool) -> tuple[None, str]:
        asked.append(thorough)
        return None, "torn"

    make(root, Task("a"))
    monkeypatch.setattr(facts, "read", looks)

    visit(event)

    assert asked == [thorough]
