"""When the list is done every check runs once more on the final tree, and what fails there is not done."""

from __future__ import annotations

from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put, sh

ONCE_MORE = "every check runs once more"


def test_the_final_pass_makes_a_task_of_what_a_later_one_broke(workshop: Workshop) -> None:
    first = workshop.add(
        "Keep it small", "test $(cat size | wc -l) -le 1", do="sh test -f big && rm -f big; write size 1"
    )
    workshop.add("Grow", "test -f big", "--depends-on", first, do="write big x\nsh printf 'a\\nb\\n' >> size")

    said = workshop.run("--max-tasks", "8")

    assert "is broken on the final tree" in said.stdout
    titles = [task["title"] for task in workshop.state["tasks"]]
    assert titles[2] == "Repair what a later task broke: Keep it small"


def test_the_final_pass_looks_at_a_tree_that_was_set_up_as_the_workers_were(workshop: Workshop) -> None:
    put(workshop.top / "harness-init.sh", "touch tool.pyc\n")
    workshop.add("Needs the tool", "test -f tool.pyc && grep -q done f", do="write f done")

    said = workshop.run()

    assert said.returncode == 0, said.stdout + said.stderr
    assert len(workshop.state["tasks"]) == 1


def test_what_passes_only_where_it_was_made_is_not_reproducible_and_nobody_repairs_it(
    workshop: Workshop,
) -> None:
    """Two tasks with one check, which needs a file that git ignores: named, and no agent is paid for it."""
    for title in ("One", "Two"):
        workshop.add(title, "test -f made.pyc", do="sh touch made.pyc")

    said = workshop.run()

    assert said.returncode == 0, said.stdout + said.stderr
    assert len(workshop.state["tasks"]) == 2
    named = "not reproducible: task-001, task-002: "
    assert named in said.stdout
    assert "only there are: made.pyc. Let harness-init.sh make what is missing" in said.stdout
    assert named in workshop.harness("status").stdout
    workshop.nothing_is_left_over()
    # Where the work was done is gone by now, and with it the file; the next tasks change nothing of that.
    workshop.file_task("three")
    assert workshop.run().returncode == 0
    assert len(workshop.state["tasks"]) == 3
    assert named in workshop.harness("status").stdout


def test_a_list_that_was_done_is_looked_at_once(workshop: Workshop) -> None:
    workshop.file_task("one")
    assert ONCE_MORE not in workshop.run("--no-final-check").stdout

    assert ONCE_MORE in workshop.run().stdout
    assert ONCE_MORE not in workshop.run().stdout

    sh(workshop.top, "rm", "-q", "one")
    sh(workshop.top, "commit", "-q", "-m", "a person's")
    said = workshop.run(agent="echo done > one")
    assert "task-001 is broken on the final tree" in said.stdout
    assert said.returncode == 0, said.stdout + said.stderr
    assert workshop.statuses() == {"task-001": "completed", "task-002": "completed"}
    workshop.done_is_done()
    workshop.nothing_is_left_over()
