"""A night in small: agents hang, leave locks, delete what is ours, remove the branch; still all is done.

NIGHT_TASKS says how many tasks there are (default: a few; CONTRIBUTING has the whole night).
"""

from __future__ import annotations

import os

import pytest

from tests.runs.workshop import HURRIED, Workshop

TASKS = int(os.environ.get("NIGHT_TASKS", "14"))
WORKERS = 4
DEEDS = (
    # Well-behaved: the work alone.
    "{work}",
    # Done, and then it hangs.
    "{work}\nsleep 600",
    # A killed `git add` has left its locks.
    "{work}\nsh touch $(git rev-parse --git-dir)/index.lock $(git rev-parse --git-dir)/HEAD.lock",
    "sh touch $(git rev-parse --git-common-dir)/packed-refs.lock\n{work}",
    # What may be deleted at any time.
    'sh rm -rf "$HARNESS_STATE_ROOT/.harness"\n{work}',
    # The branch that everything is for.
    "{work}\nsh git update-ref -d refs/heads/main",
    "sh git commit -q --allow-empty -m unchecked && git update-ref refs/heads/main HEAD\n{work}",
    # The project's own checkout.
    "sh git config core.bare true\n{work}",
    # Dead in the middle, and wrong at first.
    "once kill\n{work}",
    "first write {name} wrong\nthen {work}",
    # A daemon that stays.
    "sh setsid sleep 600 &\n{work}",
    "{work}\nsh git stash -q; true\n{work}",
    # Its own history.
    "sh git checkout -q --orphan own-{number}\n{work}",
    "sh git checkout -q -b mine-{number} && git commit -q --allow-empty -m mine\n{work}",
)


@pytest.mark.timeout(120 + 15 * TASKS)
def test_in_the_morning_all_is_done(workshop: Workshop) -> None:
    workshop.ok("edit", "--max-sessions", "0")
    for number in range(TASKS):
        name = f"dir{number % 3}/file{number}"
        deed = DEEDS[number % len(DEEDS)].format(work=f"write {name} done", name=name, number=number)
        check = f"grep -q done {name} && ! grep -q wrong {name}"
        workshop.add(f"Make {name}", f"grep -q done {name}" if "wrong" in deed else check, do=deed)

    run = workshop.start("-j", str(WORKERS), "--silence", "0.6", **HURRIED)

    assert run.wait(100 + 15 * TASKS) == 0, workshop.printed
    assert set(workshop.statuses().values()) == {"completed"}
    assert all(not task.get("halt") for task in workshop.state["tasks"])
    workshop.done_is_done()
    branches = {f"mine-{number}" for number in range(TASKS)}
    for branch in workshop.git.lines("for-each-ref", "--format=%(refname:short)", "refs/heads"):
        if branch in branches:
            assert branch in workshop.printed, "a branch that an agent made is not listed"
            workshop.git.run("branch", "-D", branch)
    workshop.nothing_is_left_over()
