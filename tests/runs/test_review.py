"""`harness run --review`: finished work waits until the user has looked at it."""

from __future__ import annotations

import pytest

from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put, sh


def test_nothing_is_merged_before_the_user_has_accepted_it(workshop: Workshop) -> None:
    """The second of three tasks comes after the first. One is accepted, one goes back; no attempt is lost.

    What changes nothing needs no review.
    """
    first = workshop.file_task("a")
    second = workshop.file_task("b", "--depends-on", first)
    third = workshop.file_task("c")
    nothing = workshop.add("Nothing", "true")
    before = sh(workshop.top, "rev-parse", "main")

    said = workshop.ends(9, "--review")

    assert sh(workshop.top, "rev-parse", "main") == before
    assert f"harness accept {first}   or: harness return {first} " in said.stdout
    assert f"harness rescue show {first}" in said.stdout
    assert [workshop.task(task).get("halt_kind") for task in (first, second, third)] == [
        "REVIEW",
        None,
        "REVIEW",
    ]
    assert workshop.task(nothing)["status"] == "completed"
    workshop.nothing_is_left_over()

    assert "is completed (commit" in workshop.ok("accept", first)["message"]
    workshop.ok("return", third, "write it twice")
    assert (workshop.top / "a").read_text() == "done\n"

    workshop.ends(9, "--review", agent='grep -q "write it twice" && echo done >> c || echo done > b')

    assert sh(workshop.top, "show", workshop.task(third)["handback"]["rescue"] + ":c") == "done\ndone"
    for task in (second, third):
        workshop.ok("accept", task)
    assert set(workshop.statuses().values()) == {"completed"}
    assert [task["attempts"] for task in workshop.state["tasks"]] == [0, 0, 0, 0]
    workshop.all_is_well()


@pytest.mark.release
def test_work_that_no_longer_fits_goes_to_an_agent_and_is_reviewed_again(workshop: Workshop) -> None:
    task = workshop.file_task("a")
    workshop.ends(9, "--review")
    put(workshop.top / "a", "the user was faster\n")
    sh(workshop.top, "add", "a")
    sh(workshop.top, "commit", "-q", "-m", "By hand")
    assert workshop("accept", task).code == 1
    workshop.ends(9, "--review", agent="echo done > a")
    assert workshop.task(task)["halt_kind"] == "REVIEW"
