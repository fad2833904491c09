"""Finished work waits in a queue: who is in front takes all that wait, and checks and moves them at once."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness_lib.attempts import publish
from tests.runs.conftest import Make
from tests.runs.workshop import Workshop


@contextmanager
def _queue_held(workshop: Workshop) -> Iterator[None]:
    """Stand in front of the queue, so that all work gathers behind."""
    with (workshop.git.common_dir / publish.LINE).open("a") as line:
        fcntl.flock(line, fcntl.LOCK_EX)
        yield


def _waiting(workshop: Workshop, count: int) -> Callable[[], bool]:
    def all_wait() -> bool:
        intents = [(task.get("intent") or {}).get("action") for task in workshop.state["tasks"]]
        return intents.count("merge") == count

    return all_wait


def _leases(workshop: Workshop) -> set[str]:
    return {f"{task['id']} {task.get('lease_expires_at')}" for task in workshop.state["tasks"]}


def _checks_of_the_queue(workshop: Workshop) -> list[Path]:
    return list((workshop.top / ".harness/logs").glob("*/*-merged*.log"))


def _merges(workshop: Workshop) -> int:
    moves = workshop.sh("reflog", "show", "--format=%gs", "main").splitlines()
    return len([move for move in moves if "merge" in move])


def _fill(workshop: Workshop, names: list[str], check: str) -> None:
    tasks: list[dict[str, Any]] = [
        {
            "id": f"task-{number:03d}",
            "title": f"Make {name}",
            "description": f"do: write {name} done",
            "validation": {"command": check},
        }
        for number, name in enumerate(names, 1)
    ]
    workshop.fill(tasks)


@pytest.mark.release
@pytest.mark.parametrize("mode", ["exclusive", "concurrent"])
def test_what_waits_is_merged_at_once(make_workshop: Make, mode: str) -> None:
    """Who waits renews its claim."""
    workshop = make_workshop(mode=mode)
    _fill(workshop, ["a", "b", "c"], "test -f README.md")
    with _queue_held(workshop):
        workshop.start("-j", "3", HARNESS_LEASE_SECONDS="6")
        workshop.wait_for("all three wait", _waiting(workshop, 3))
        before = _leases(workshop)
        if mode == "concurrent":
            workshop.wait_for("each renews its lease", lambda: not before & _leases(workshop))

    workshop.has_ended(0)
    assert [task["fence"] for task in workshop.state["tasks"]] == [1, 1, 1]
    assert len(_checks_of_the_queue(workshop)) == 1
    assert _merges(workshop) == 1
    workshop.all_is_well()


def test_work_that_breaks_the_batch_keeps_none_of_the_others(workshop: Workshop) -> None:
    """Each passes alone; two of them do not pass together, and which of them it is a split must find out."""
    _fill(workshop, ["a", "left", "b", "right"], "! { test -f left && test -f right; }")
    with _queue_held(workshop):
        workshop.start("-j", "4")
        workshop.wait_for("all four wait", _waiting(workshop, 4))

    workshop.has_ended(9)
    assert sorted(workshop.statuses().values()) == ["completed", "completed", "completed", "failed"]
    (failed,) = [task for task in workshop.state["tasks"] if task["status"] == "failed"]
    assert "with what was merged meanwhile it does not" in workshop.printed
    assert failed["title"] in ("Make left", "Make right")
    assert len([name for name in ("left", "right") if (workshop.top / name).exists()]) == 1
    workshop.all_is_well()


@pytest.mark.release
def test_work_that_conflicts_with_the_batch_is_left_out_and_goes_back(workshop: Workshop) -> None:
    workshop.add("One", "grep -q one f", do="write f one")
    workshop.add("Two", "grep -q two f", do="write f two")
    workshop.file_task("g")
    with _queue_held(workshop):
        workshop.start("-j", "3")
        workshop.wait_for("all three wait", _waiting(workshop, 3))

    workshop.has_ended(0)
    assert [task["attempts"] for task in workshop.state["tasks"]] == [0, 0, 0]
    assert sorted(workshop.read("f").split()) == ["one", "two"]
    assert "conflicts with what was merged meanwhile" in workshop.printed
    others = " ".join(workshop.printed.split()).partition("The other side: ")[2].partition(" (git show")[0]
    assert "[task-00" in others
    assert "Make g" not in others
    assert "left HEAD" not in workshop.printed
    workshop.all_is_well()


@pytest.mark.parametrize("is_flaky", [True, False])
def test_a_short_check_runs_again_before_blame(workshop: Workshop, tmp_path: Path, is_flaky: bool) -> None:
    """It fails the second time that it runs, or also the third, on top of the user's commit."""
    runs = tmp_path / "runs"
    merged = f"git -C {workshop.top} commit -q --allow-empty -m Mine; date > {workshop.top}/mine"
    merged += f"; git -C {workshop.top} add mine; git -C {workshop.top} commit -q -m Mine"
    once = f"test -e {tmp_path}/seen || {{ touch {tmp_path}/seen; {merged}; }}"
    fails = "2" if is_flaky else "[23]"
    check = f"grep -q done f && {{ echo x >> {runs}; ! wc -l < {runs} | grep -q '^{fails}$'; }}"
    workshop.add("Flaky", check, do=f"write f done\nsh {once}")

    workshop.ends(0)

    task = workshop.task("task-001")
    logs = {path.name for path in (workshop.top / ".harness/logs/task-001").iterdir()}
    assert (task["status"], task["attempts"]) == ("completed", 0)
    assert {"1-merged.log", "1-merged-again.log"} <= logs
    assert task.get("outcome") == ("flaky" if is_flaky else None)
    assert any("is flaky" in each for each in task.get("look_at", ())) is is_flaky
    # What really fails goes back to an agent once it has failed twice, and passes alone again.
    assert len(runs.read_text().splitlines()) == (3 if is_flaky else 4)


def test_what_a_check_has_left_is_not_there_when_it_runs_on_the_merged_content(workshop: Workshop) -> None:
    """The branch has no such file: what passes only with it would be red there."""
    workshop.put("shared", "text\n")
    workshop.sh("add", "shared")
    workshop.sh("commit", "-qm", "Shared")
    mine = f"sh git -C {workshop.top} rm -q shared && git -C {workshop.top} commit -q -m Mine"
    check = "grep -q done f && { test -e shared || test -e made; } && touch made"
    workshop.add("Work", check, "--max-attempts", "1", do=f"write f done\nonce {mine}")

    said = workshop.ends(9)

    assert "with what was merged meanwhile it does not" in said.stdout
    assert not (workshop.top / "f").exists()


def test_each_check_of_a_batch_runs_on_the_merged_content_alone(workshop: Workshop) -> None:
    for name in ("a", "b"):
        check = f"grep -q done {name} && ! test -e new && touch new"
        workshop.add(f"Make {name}", check, do=f"write {name} done")
    with _queue_held(workshop):
        workshop.start("-j", "2")
        workshop.wait_for("both wait", _waiting(workshop, 2))

    workshop.has_ended(0)
    assert _merges(workshop) == 1
    workshop.nothing_is_left_over()
