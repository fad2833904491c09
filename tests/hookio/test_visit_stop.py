"""A whole visit at a stop: what is answered, counted, logged and taken away."""

from __future__ import annotations

import json

import pytest  # noqa: TC002 (as in every other file of tests)

from harness_lib.hookio import handler, messages, payload, policy
from harness_lib.system.place import checkout
from harness_lib.system.place.roots import Root
from harness_lib.task import Task
from tests.hookio.visits import BELL, DONE, ME, OTHER, Heard, Visit, by_hand, kept, log, make, marker


def test_the_marker_stays_where_somebody_has_added_a_task_meanwhile(root: Root) -> None:
    make(root, DONE, Task("a"))
    said = payload.read("Stop", json.dumps({"session_id": ME}).encode())

    handler._finish(handler.Visit(str(root.path), {}, said, BELL))

    assert marker(root).exists()
    assert not root.log.exists()


def test_what_is_wrong_with_the_list_is_told(root: Root, visit: Visit) -> None:
    make(root, Task("a"))
    text = root.state.read_text(encoding="utf-8").replace('"pending"', '"pendign"')
    root.state.write_text(text, encoding="utf-8")

    assert "is 'pendign', must be one of" in visit("Stop").reason


def test_whoever_works_is_held_and_that_is_counted(root: Root, visit: Visit) -> None:
    make(root, Task("a", "Title"))

    heard = visit("Stop")

    assert heard.err == ""
    assert f'Next is a "Title". Type: {checkout.LAUNCHER} claim\n' in heard.reason
    assert heard.out.endswith("}\n")
    assert (kept(root).progress, kept(root).blocks) == ("3:0 ", 1)


def test_each_installation_counts_for_itself(root: Root, visit: Visit) -> None:
    make(root, Task("a"))
    visit("Stop", "gemini")

    assert (kept(root, f"{ME} {BELL} gemini").blocks, kept(root).blocks) == (1, 0)


def test_agents_without_an_id_share_one_count(root: Root, visit: Visit) -> None:
    make(root, Task("a"))
    visit("Stop", session_id=None)

    assert kept(root, f"nobody {BELL}").blocks == 1


def test_after_enough_blocks_one_is_let_go_and_warned_of_once(root: Root, visit: Visit) -> None:
    make(root, Task("a"))

    heard = [visit("Stop") for _ in range(policy.PATIENCE + 2)]

    warning = messages.released(policy.PATIENCE, checkout.LAUNCHER)
    assert [bool(each.out) for each in heard] == [True] * policy.PATIENCE + [False, False]
    assert [each.err for each in heard[-2:]] == [f"WARN harness: {warning}\n", ""]
    assert log(root) == [f"[SESSION-3] WARN {warning}"]


def test_of_a_list_of_the_prose_the_log_tells_what_its_session_has_done(root: Root, visit: Visit) -> None:
    by_hand(
        root, {"id": "a", "status": "pending"}, session_count=2, session_config={"max_tasks_per_session": 1}
    )
    assert "Go on with" in visit("Stop").reason
    root.log.write_text("[2026-01-01T00:00:00Z] [SESSION-2] Completed [b]\n", encoding="utf-8")

    heard = visit("Stop")

    assert (heard.out, heard.err.partition(" (")[0]) == (
        "", "WARN harness: this session has done as many tasks as it may"
    )  # fmt: skip
    assert log(root)[-1].startswith("[SESSION-2] WARN this session")


def test_in_a_list_of_the_prose_only_the_named_worker_is_told_apart(root: Root, visit: Visit) -> None:
    by_hand(
        root,
        {"id": "a", "status": "in_progress", "claimed_by": ME},
        session_config={"concurrency_mode": "concurrent"},
    )

    assert visit("Stop").reason
    assert visit("Stop", env={"HARNESS_WORKER_ID": "w"}).out == ""


def test_when_all_is_done_the_marker_comes_down_with_the_numbers_in_the_log(root: Root, visit: Visit) -> None:
    tasks = (DONE, Task("f", status="failed", attempts=3, max_attempts=3))
    make(root, *tasks)

    assert visit("Stop") == Heard(0, "", "")
    assert not marker(root).exists()
    assert log(root) == [
        (
            "[SESSION-3] STATS tasks_total=2 completed=1 failed=1 pending=0 blocked=0 attempts_total=3 "
            "checkpoints=0"
        )
    ]


def test_of_a_list_that_cannot_be_read_no_session_is_known(root: Root, visit: Visit) -> None:
    root.state.write_text("{", encoding="utf-8")
    marker(root).touch()
    visit("Stop")

    heard = visit("Stop", stop_hook_active=True)

    assert heard.err.startswith("WARN harness: ")
    assert log(root) == [f"[SESSION-0] {heard.err.strip().replace(' harness:', '')}"]


def test_who_is_not_concerned_leaves_the_marker(root: Root, visit: Visit) -> None:
    make(root, DONE)

    assert visit("Stop", session_id=OTHER) == Heard(0, "", "")
    assert marker(root).exists()
    assert not root.log.exists()


def test_in_a_list_of_ours_an_agent_may_have_claimed_under_its_id(root: Root, visit: Visit) -> None:
    make(root, Task("a", status="in_progress", claimed_by=ME), mode="concurrent")

    assert "You hold a." in visit("Stop").reason


def test_without_the_launcher_beside_us_its_name_is_typed(
    root: Root, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(root, Task("a"))
    monkeypatch.setattr(checkout, "LAUNCHER", "/no/such")

    assert "Type: harness claim\n" in visit("Stop").reason
