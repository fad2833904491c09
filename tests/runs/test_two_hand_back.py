"""A run that sees all its workers idle, and one of them, hand back the same task of a worker that died."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from harness_lib.attempts import check, claim, interrupted
from harness_lib.core.context import Context, Merging
from harness_lib.errors import EnvSetupError, LeaseLostError
from harness_lib.rules import transitions
from harness_lib.rules.events import Event, Idle, News, Notice, Ready
from harness_lib.runs.options import WorkerConfig
from harness_lib.runs.worker import Worker
from harness_lib.runs.worker_main import Merger
from harness_lib.runs.worker_pool import Orphans
from harness_lib.system.git import worktrees
from harness_lib.system.git.repository import Git
from harness_lib.system.processes import runner
from harness_lib.task import Task
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put
from tests.verbs.project import Agent, Time

RUN = "run-1"
TASK = "task-001"


@dataclass
class Crew:
    """The run and the workers of a workshop, in this process, each with what it sees of the list."""

    workshop: Workshop
    messages: list[str] = field(default_factory=list)
    heard: list[Event] = field(default_factory=list)

    def context(self, worker: str = RUN) -> Context:
        ctx = self.workshop.context(worker)
        session = ctx.own_session(ctx.store.ask())
        assert session is not None
        ctx.session = session
        return ctx

    def take(self, number: int) -> Task:
        """Let worker `number` claim the task in its own work tree, and make something there."""
        ctx, git = self.context(f"{RUN}#{number}"), self.workshop.cleaned(number).git
        taken = claim.take(ctx.at(git)).task
        assert taken is not None
        put(git.top / "made", f"by worker {number}\n")
        return taken

    def queue(self, number: int) -> Context:
        """Let worker `number` hand its finished task to the worker that merges; return that one's context."""
        ctx, finished = self.context(f"{RUN}#0"), self.take(number)
        with ctx.store.transaction() as tx:
            begun = transitions.begin_merge(finished, now=tx.now, commit=finished.started_at_commit or "")
            tx.replace(transitions.hand_over(begun, worker=f"{RUN}#0", now=tx.now, lease_seconds=60))
        return ctx

    def worker(self, number: int = 1, *, tries: int) -> Worker:
        """Return worker `number`, which has tried `tries` times in vain to hand the task back."""
        orders = WorkerConfig(
            worker=f"{RUN}#{number}",
            number=number,
            place="",
            target="refs/heads/main",
            agent_command="true",
        )
        made = Worker(self.context(orders.worker), orders, self.heard.append)
        self._spend(made._reclaims._tries, tries)
        return made

    def run(self, *, tries: int = 0) -> Orphans:
        made = Orphans(self.context(), self._tell)
        self._spend(made._reclaims._tries, tries)
        return made

    def now(self) -> Task:
        task = self.context().store.ask().task(TASK)
        assert task is not None
        return task

    def _spend(self, tries: interrupted.Tries, count: int) -> None:
        for _ in range(count):
            tries.spent(self.now())

    def _tell(self, news: News) -> None:
        assert isinstance(news, Notice)
        self.messages.append(news.message)


@pytest.fixture
def crew(workshop: Workshop) -> Iterator[Crew]:
    workshop.file_task("made")
    person = Agent(RUN, workshop.top, Time(), {"HARNESS_HOME": str(workshop.home)})
    person.ok("start")
    yield Crew(workshop)
    person.die()


def worktree(crew: Crew, task: Task) -> Git:
    """Return the work tree of the attempt at `task`."""
    found = worktrees.at(crew.workshop.git, Path(str(task.worktree)))
    assert found is not None
    return found


def untouched(crew: Crew, task: Task) -> None:
    """Hold that the task is still its new worker's, and so is all that this one has made."""
    assert crew.now() == task
    assert task.worktree is not None
    assert Path(task.worktree, "made").read_text() == "by worker 2\n"
    assert not (crew.workshop.home / "set-aside").exists()


def test_a_worker_gives_up_nothing_that_another_one_has_claimed_meanwhile(crew: Crew) -> None:
    held = crew.take(1)
    worker = crew.worker(1, tries=interrupted.TRIES - 1)
    crew.run().of(f"{RUN}#1")
    theirs = crew.take(2)

    assert not worker._hand_back(held)

    untouched(crew, theirs)
    (said,) = crew.heard
    assert isinstance(said.news, Idle)
    assert "has no worker any more" in said.news.why


def test_a_task_whose_attempt_cannot_be_ended_is_halted_and_its_work_is_kept(crew: Crew) -> None:
    held, ctx = crew.take(1), crew.context()

    ended = interrupted.give_up(ctx, held, OSError("no room"))

    why = "ENV_SETUP: the attempt could not be ended: no room. Its work is kept: "
    assert (ended.status, ended.attempts, str(ended.halt).startswith(why)) == ("pending", 0, True)
    log = crew.workshop.read("harness-progress.txt")
    assert f"WARN [task-001] given up after 3 tries: {ended.halt}" in log
    assert crew.workshop.sh("show", "refs/harness/rescue/task-001/1:made") == "by worker 1"


def test_work_whose_checked_commit_is_gone_goes_to_the_next_attempt(crew: Crew) -> None:
    """As after the user's `git gc --prune=now`, which takes what was made while it ran."""
    held, ctx = crew.take(1), crew.context(f"{RUN}#1")
    with ctx.store.transaction() as tx:
        tx.replace(transitions.begin_merge(held, now=tx.now, commit="1" * 40))

    assert crew.worker(1, tries=0)._hand_back(crew.now())

    task = crew.now()
    assert (task.status, task.attempts, task.halt) == ("pending", 0, None)
    assert task.handback is not None
    assert crew.workshop.sh("show", f"{task.handback.rescue}:made") == "by worker 1"


def test_the_run_gives_up_nothing_that_a_worker_has_claimed_meanwhile(crew: Crew) -> None:
    """The run has looked at who holds what before a worker handed the task back and another one took it."""
    held = crew.take(1)
    run = crew.run(tries=interrupted.TRIES - 1)
    assert crew.worker(1, tries=0)._hand_back(held)
    theirs = crew.take(2)

    tried = run._reclaims.reclaim(held)

    assert tried.how == "lost"
    untouched(crew, theirs)


@pytest.mark.parametrize("first", ["run", "worker"])
def test_whichever_comes_second_leaves_the_task_as_the_first_has_left_it(crew: Crew, first: str) -> None:
    held = crew.take(1)
    worker = crew.worker(1, tries=0)
    if first == "run":
        crew.run().of(f"{RUN}#1")
        then = crew.now()
        assert not worker._hand_back(held)
    else:
        assert worker._hand_back(held)
        then = crew.now()
        crew.run().of(f"{RUN}#1")

    assert crew.now() == then
    assert (then.status, then.attempts, then.claimed_by, then.halt) == ("pending", 0, None, None)
    assert then.handback is not None


def test_a_claim_that_was_lost_is_asked_for_before_its_work_tree_is_moved_aside(crew: Crew) -> None:
    """Where not even a rescue can be made, the whole directory is kept elsewhere: not another worker's."""
    stale = crew.take(1)
    crew.run().of(f"{RUN}#1")
    theirs = crew.take(2)
    assert theirs.worktree is not None
    git_file = worktrees.link(Path(theirs.worktree))
    link = git_file.read_text()
    git_file.write_text("broken\n")

    with pytest.raises(LeaseLostError):
        interrupted.give_up(crew.context(), stale._replace(worktree=theirs.worktree), OSError())

    git_file.write_text(link)
    untouched(crew, theirs)


def test_the_check_of_whoever_has_the_task_now_runs_on(crew: Crew) -> None:
    held = crew.take(1)
    crew.run().of(f"{RUN}#1")
    theirs = crew.take(2)
    ctx = crew.context(f"{RUN}#1")
    log = check.log_directory(ctx, theirs) / "1.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True) as command:
        runner.note(log, command.pid)

        assert not crew.worker(1, tries=0)._hand_back(held)

        assert command.poll() is None
        assert log.with_suffix(".running").exists()
    assert command.returncode == 0
    untouched(crew, theirs)


def test_what_nobody_can_hand_back_is_given_up_after_some_tries_its_work_kept(crew: Crew) -> None:
    """Others go on, and the task waits for the user."""
    held = crew.take(1)
    assert held.worktree is not None
    put(worktree(crew, held).git_dir / "index", "torn")
    worker = crew.worker(1, tries=0)

    came = [worker._hand_back(crew.now()) for _ in range(interrupted.TRIES)]

    assert came == [False, False, True]
    after = crew.now()
    assert (after.status, after.attempts) == ("pending", 0)
    assert (after.claimed_by, after.halt_kind) == (None, "ENV_SETUP")
    (kept,) = (crew.workshop.home / "set-aside").glob("*/*/made")
    assert kept.read_text() == "by worker 1\n"
    assert f"Its work tree is kept in {kept.parent}." in (after.halt or "")


def test_no_task_is_halted_where_git_makes_no_work_tree(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the others have finished waits for a machine that works: the run ends, and blames no task."""
    # A merger keeps its claims for as long as its process lives; this one ends before that.
    monkeypatch.setattr(check, "kept_along", [])
    ctx = crew.queue(2)
    place = crew.workshop.top.parent / "merger"
    orders = crew.worker(1, tries=0).config
    merger = Merger(ctx, replace(orders, worker=f"{RUN}#0", number=0, place=str(place)), crew.heard.append)
    merger._is_prepared = True
    (crew.workshop.top / ".git/worktrees").rename(crew.workshop.top / ".git/away")
    put(crew.workshop.top / ".git/worktrees", "in the way")

    for _ in range(interrupted.TRIES):
        with pytest.raises(EnvSetupError, match="worktree"):
            merger._one()

    assert (crew.now().status, crew.now().halt) == ("in_progress", None)


def test_a_worker_asks_for_its_next_task_while_all_waits_to_be_merged(crew: Crew) -> None:
    """The run knows how many may begin; what is above the limit counts in the next session."""
    crew.workshop.file_task("more")
    crew.workshop.ok("edit", "--max-tasks-per-session", "1")
    crew.queue(2)
    worker = crew.worker(1, tries=0)
    worker.ctx.merging = Merging("turns", by=f"{RUN}#0")
    # It hears that the run ends when it has asked, so that no agent starts.
    worker.draining.set()
    worker.allowed.release()

    assert worker._one()

    assert crew.heard[-1].news == Ready()


def test_a_run_tells_once_whose_task_all_its_workers_wait_for(crew: Crew) -> None:
    taken = crew.take(2)
    with crew.context().store.transaction() as tx:
        tx.replace(taken._replace(claimed_by="a chat"))
    run, ends = crew.run(), "if nobody does any more, type: harness release task-001"

    for _ in range(2):
        run._next_try = 0.0
        run.left(crew.context().store.ask().in_progress())

    assert crew.messages == [f"every worker waits: a chat works on task-001; {ends}"]
