"""A run believes what was proven; what somebody has written into the list is checked where work is merged."""

from __future__ import annotations

import json

from tests.runs.workshop import Workshop

FORGE = (
    "python3 -c \"import json; p='harness-tasks.json'; d=json.load(open(p)); "
    "[t.update(status='completed') for t in d['tasks']]; json.dump(d, open(p, 'w'))\""
)


def forge(workshop: Workshop, *task_ids: str, **fields: object) -> None:
    state = workshop.state
    for task in state["tasks"]:
        if task["id"] in task_ids:
            task.update(status="completed", **fields)
    (workshop.top / "harness-tasks.json").write_text(json.dumps(state))


def test_a_run_does_the_work_of_a_list_in_which_all_was_said_to_be_done(workshop: Workshop) -> None:
    """Where status and check were written together, it says so."""
    forge(workshop, workshop.file_task("one"), workshop.file_task("two"))
    forge(workshop, workshop.file_task("three"), validation={"command": "true"})

    workshop.ends(0)

    workshop.done_is_done()
    assert (workshop.top / "one").read_text().startswith("done")
    log = (workshop.top / "harness-progress.txt").read_text()
    assert "WARN [task-003] an external edit says" in log
    assert "its check passes: true" in log
    workshop.nothing_is_left_over()


def test_an_agent_of_a_run_that_writes_completed_into_the_list_has_done_nothing(workshop: Workshop) -> None:
    """It forges its own task, which is in progress, and the one after it, which is not."""
    forging = FORGE.replace("'harness-tasks.json'", repr(str(workshop.top / "harness-tasks.json")))
    workshop.add("One", "test -f one", do=f"sh {forging}\nwrite one x")
    workshop.file_task("two")

    workshop.ends(0, "-j", "1")

    workshop.done_is_done()
    assert workshop.task("task-002")["proof"]
    assert (workshop.top / "two").exists()
    workshop.nothing_is_left_over()
