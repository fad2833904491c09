"""`harness note` and `harness checkpoint`: what is kept for later tasks, and of the work until now."""

from __future__ import annotations

from datetime import datetime, timezone

from harness_lib.core import quoting
from harness_lib.state.answers import Answers
from harness_lib.task import State, Task
from tests.verbs.project import Agent, Project, begin


def test_a_note_is_one_line_in_the_list_and_show_shows_it(project: Project, one: Agent) -> None:
    said = one.ok("note", "task-001", "ports 80 and\n81 are\x1b[31m taken")
    assert project.task()["notes"] == ["ports 80 and 81 are\ufffd[31m taken"]
    assert said["task"]["notes"] == project.task()["notes"]
    assert "  ports 80 and 81 are\ufffd[31m taken" in one("show", "task-001").out


def test_anybody_may_note_at_any_status(project: Project, one: Agent) -> None:
    """Also a second terminal while a session is open, and after the task is done."""
    other = project.agent("other")
    other.ok("note", "task-001", "pending")
    one.ok("claim")
    assert other.ok("note", "task-001", "in progress")["next"] == "harness status"
    one.ok("finish")
    other.ok("note", "task-001", "completed")
    assert project.task()["notes"] == ["pending", "in progress", "completed"]
    assert project.task()["status"] == "completed"


def test_the_same_words_are_one_note_and_the_oldest_ones_go(project: Project, one: Agent) -> None:
    project.edit_task(notes=[f"note {number}" for number in range(20)])
    one.ok("note", "task-001", "note 3")
    assert len(project.task()["notes"]) == 20
    said = one.ok("note", "task-001", "one more")
    assert project.task()["notes"][0] == "note 1"
    assert project.task()["notes"][-2:] == ["note 3", "one more"]
    assert "note 0" in said["warnings"][0]


def test_a_note_longer_than_a_brief_shows_is_kept_with_a_warning(project: Project, one: Agent) -> None:
    said = one.ok("note", "task-001", "x" * 3000)
    assert len(project.task()["notes"][0]) == 2000
    assert "400 characters" in said["warnings"][0]
    assert one.ok("note", "task-001", "x" * 400)["warnings"] == []


def test_what_cannot_be_noted_changes_nothing(project: Project, one: Agent) -> None:
    before = project.file.read_bytes()
    for argv in (("task-001", " \n"), ("task-009", "of no task")):
        assert one.fails(2, "note", *argv)["error"]["hint"]
    assert project.file.read_bytes() == before


def test_the_brief_of_a_later_claim_shows_what_completed_tasks_noted(one: Agent) -> None:
    for title in ("Two", "Three"):
        one.ok("add", title, "--validate", "true")
    one.ok("note", "task-003", "of a task that nobody has begun")
    one.ok("claim")
    one.ok("finish")
    one.ok("note", "task-001", "use the second port")
    assert "- task-001: use the second port" in one.ok("claim")["brief"]
    assert "nobody has begun" not in one.ok("claim")["brief"]
    assert "- task-001: use the second port" in one.ok("claim", "--dry-run")["message"]
    assert "- task-001: use the second port" in one("start").out


# --- which notes a brief has room for


def done(task_id: str, *notes: str) -> Task:
    return Task(task_id, status="completed", notes=notes, completed_at="2025-07-01T10:00:00Z")


def listed(*tasks: Task) -> Answers:
    return Answers(State(tasks=tasks), datetime.now(timezone.utc))


def test_what_one_task_has_noted_is_shown_the_newest_first() -> None:
    """Which tasks go first is held by tests/rules."""
    me = Task("me", notes=("mine",))
    assert quoting.notes(listed(done("new", "a", "b"), me), me)[1:] == ["- me: mine", "- new: b", "- new: a"]


def test_notes_are_bounded_in_number_and_length() -> None:
    me = Task("me")
    many = listed(done("many", *(f"n{number}" for number in range(20))), me)
    assert [line[-3:] for line in quoting.notes(many, me)[1:]] == ["n19", "n18", "n17", "n16", "n15"]
    long = listed(done("long", *(f"{number}" + "x" * 1999 for number in range(5))), me)
    assert len(quoting.notes(long, me)) == 3
    assert all(len(line) < 420 for line in quoting.notes(long, me))
    assert quoting.notes(long, me, length=10) == []


# -- `harness checkpoint` records progress with the content that it speaks of; `harness beat` renews a lease


LONG_AGO = "2020-01-01T00:00:00Z"


def test_it_is_recorded_with_the_content_of_that_moment(project: Project, holder: Agent) -> None:
    project.put("half.txt", "half\n")
    index = (project.top / ".git/index").read_bytes()

    holder.ok("checkpoint", "task-001", "1/3", "half of it")

    point = project.task()["checkpoints"][0]
    assert (point["step"], point["total"], point["description"]) == (1, 3, "half of it")
    assert project.git("show", f"{point['tree']}:half.txt") == "half"
    assert (project.top / ".git/index").read_bytes() == index
    assert project.grep('[SESSION-1] CHECKPOINT [task-001] step=1/3 "half of it"')


def test_a_step_that_is_none_is_a_wrong_argument(project: Project, holder: Agent) -> None:
    for step in ("", "1", "1/0", "0/3", "4/3", "a/b", "1/3/5", "-1/3", "1/99999999"):
        assert holder("checkpoint", "task-001", "--", step, "x").code == 2, step

    assert project.task()["checkpoints"] == []


def test_only_of_a_held_task_and_who_holds_one_need_not_name_it(project: Project, one: Agent) -> None:
    for named in ((), ("task-001",), ("nothing",)):
        one.fails(2, "checkpoint", *named, "1/2", "x")
    assert project.task()["checkpoints"] == []
    one.ok("claim")

    one.ok("checkpoint", "1/2", "half of it")

    assert project.task()["checkpoints"][0]["description"] == "half of it"


def test_a_very_long_text_is_cut_and_the_log_line_too(project: Project, holder: Agent) -> None:
    holder.ok("checkpoint", "task-001", "1/2", "long " * 30000)

    assert len(project.task()["checkpoints"][0]["description"]) <= 1000
    assert max(map(len, project.log)) <= 4000


def test_the_holder_renews_its_lease_by_either_verb_and_nobody_else_does(shared: Project) -> None:
    holder = shared.agent("holder")
    begin(holder)
    shared.edit_task(lease_expires_at=LONG_AGO)

    assert shared.agent("other").ok("beat")["next"] == "harness status"
    assert shared.task()["lease_expires_at"] == LONG_AGO
    assert holder.ok("beat")["message"] == "renewed: task-001"
    assert shared.task()["lease_expires_at"] > LONG_AGO
    shared.edit_task(lease_expires_at=LONG_AGO)
    holder.ok("checkpoint", "task-001", "1/2", "x")
    assert shared.task()["lease_expires_at"] > LONG_AGO
