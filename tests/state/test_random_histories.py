"""Whatever is done to a list, every store gives the same answers to every question after every step."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from harness_lib import timestamps
from harness_lib.rules import arrows, transitions
from harness_lib.rules.attempts import Ending, Halt
from harness_lib.state.api import Store, Tx
from harness_lib.state.codec import ContractError
from harness_lib.state.store import Store as FileStore
from harness_lib.system.place.roots import Root
from harness_lib.task import (
    MODES,
    PRIORITIES,
    Checkpoint,
    OnFailure,
    Recheck,
    Session,
    SessionConfig,
    State,
    Task,
    Validation,
)
from tests import postgres
from tests.state.memorystore.store import MemoryStore
from tests.state.questions import COMMITS, WORKERS, Hands, answers

LEASE = 600
PLACES = st.integers(0, 30)
WHO = st.sampled_from(WORKERS)


class BrokenError(Exception):
    """What goes wrong in the middle of a change."""


class Histories(RuleBasedStateMachine):
    """One list in each kind of store; `place` picks a task, whatever their number is."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="harness-test-"))
        self.clock = Hands()
        file = FileStore(Root(self.directory.resolve()), clock=self.clock)
        file.create(State(sessions=()))
        database = postgres.begun(self.directory, self.clock)
        self.stores: Sequence[Store] = (file, MemoryStore(clock=self.clock), database)
        self.number = 0

    def teardown(self) -> None:
        shutil.rmtree(self.directory)

    def both(self, act: Callable[[Tx], object]) -> None:
        """Do `act` in a transaction of each store: it comes to the same, inside and out."""
        file, memory, database = (_outcome(store, act) for store in self.stores)
        assert file == memory == database

    def ids(self, arrow: arrows.ArrowName | None = None) -> list[str]:
        every = self.stores[0].ask().search()
        return [task.id for task in every if arrow is None or arrows.may(arrow, task)]

    def on_one(
        self, place: int, act: Callable[[Tx, str], object], arrow: arrows.ArrowName | None = None
    ) -> None:
        """Do `act` on one of the tasks that `arrow` may be drawn from, if there is one."""
        candidates = self.ids(arrow)
        if candidates:
            self.both(lambda tx: act(tx, candidates[place % len(candidates)]))

    def change(self, place: int, arrow: arrows.ArrowName, make: Callable[[Tx, Task], Task]) -> None:
        """Replace one of them."""
        self.on_one(place, lambda tx, name: tx.replace(make(tx, _there(tx, name))), arrow)

    @invariant()
    def every_answer_is_the_same(self) -> None:
        file, memory, database = (answers(store.ask()) for store in self.stores)
        assert file == memory == database

    @rule(
        priorities=st.lists(st.sampled_from(PRIORITIES), min_size=1, max_size=3),
        needs=st.lists(PLACES, max_size=3),
        notes=st.booleans(),
    )
    def add(self, priorities: list[str], needs: list[int], notes: bool) -> None:
        known = self.ids()
        fresh = []
        for priority in priorities:
            self.number += 1
            fresh.append(
                Task(
                    f"task-{self.number:03d}",
                    f"Title {self.number % 3}",
                    priority=priority,  # type: ignore[arg-type]
                    depends_on=tuple(dict.fromkeys(known[need % len(known)] for need in needs if known)),
                    max_attempts=1 + self.number % 2,
                    validation=Validation("true" if notes else None),
                    notes=("mind the gap",) if notes else (),
                )
            )
        self.both(lambda tx: tx.add(fresh))

    @rule(worker=WHO, place=PLACES, leased=st.booleans())
    def claim(self, worker: str, place: int, leased: bool) -> None:
        def take(tx: Tx) -> object:
            findings = tx.validate_dependencies()
            ready = tx.claimable()
            task = tx.next_ready() if place % 2 else (ready[place % len(ready)] if ready else None)
            if task is not None and tx.held_by(worker) is None:
                tx.replace(
                    transitions.claim(
                        task,
                        worker=worker,
                        now=tx.now,
                        base=COMMITS[0],
                        gate=None,
                        worktree=None,
                        lease_seconds=LEASE if leased else None,
                    )
                )
            return findings, ready, task

        self.both(take)

    @rule(place=PLACES, step=st.integers(1, 3))
    def checkpoint(self, place: int, step: int) -> None:
        self.change(
            place,
            "checkpoint",
            lambda tx, task: transitions.checkpoint(
                task,
                Checkpoint(step, 3, timestamp=timestamps.render(tx.now)),
                now=tx.now,
                lease_seconds=LEASE,
            ),
        )

    @rule(place=PLACES, commit=st.sampled_from(COMMITS), whole=st.booleans())
    def finish(self, place: int, commit: str, whole: bool) -> None:
        """Commit and complete, or die between the two."""

        def done(tx: Tx, task: Task) -> Task:
            begun = transitions.begin_commit(task, now=tx.now, head=COMMITS[0], commit=commit)
            return transitions.complete(begun, now=tx.now) if whole else begun

        self.change(place, "begin_commit", done)

    @rule(place=PLACES)
    def settle(self, place: int) -> None:
        self.change(place, "complete", lambda tx, task: transitions.complete(task, now=tx.now))

    @rule(place=PLACES, permanent=st.booleans())
    def fail(self, place: int, permanent: bool) -> None:
        def failed(tx: Tx, task: Task) -> Task:
            begun = transitions.begin_rollback(
                task,
                now=tx.now,
                category="TEST_FAIL",
                message="no",
                rescue=None,
                head=None,
                ending=Ending.FAILED_FOR_GOOD if permanent else Ending.FAILED,
            )
            return transitions.fail(begun, now=tx.now)

        self.change(place, "begin_rollback", failed)

    @rule(place=PLACES)
    def release(self, place: int) -> None:
        self.change(
            place,
            "begin_rollback",
            lambda tx, task: transitions.fail(
                transitions.release(task, now=tx.now, message=None), now=tx.now
            ),
        )

    @rule(place=PLACES)
    def retry(self, place: int) -> None:
        def reset(tx: Tx, name: str) -> object:
            before = tx.tasks((name, *tx.blocked_through(name)))
            for task in before:
                tx.replace(transitions.reset(task))
                tx.forget_attempts(task.attempts)
            return tx.unreachable()

        self.on_one(place, reset, "reset")

    @rule(place=PLACES, worker=WHO)
    def take_over_what_has_expired(self, place: int, worker: str) -> None:
        def resumed(tx: Tx) -> object:
            expired = tx.expired()
            if expired:
                task = expired[place % len(expired)]
                tx.replace(
                    transitions.resume(task, worker=worker, now=tx.now, worktree=None, lease_seconds=LEASE)
                )
            return expired

        self.both(resumed)

    @rule(place=PLACES)
    def remove(self, place: int) -> None:
        """Also what others need: then the contract is broken, and nothing is removed."""
        self.on_one(place, lambda tx, name: tx.remove(name))

    @rule(place=PLACES, needs=st.lists(PLACES, max_size=2), title=st.sampled_from(["Title 1", "title  1"]))
    def edit(self, place: int, needs: list[int], title: str) -> None:
        """Let a task wait for others, itself and those that wait for it among them."""
        ids = self.ids()
        needed = tuple(dict.fromkeys(ids[need % len(ids)] for need in needs if ids))
        self.on_one(
            place,
            lambda tx, name: tx.replace(_there(tx, name)._replace(title=title, depends_on=needed)),
        )

    @rule(
        place=PLACES,
        check=st.sampled_from(["true", "false", " ", None]),
        cleanup=st.sampled_from(["rm x", None]),
    )
    def give_commands(self, place: int, check: str | None, cleanup: str | None) -> None:
        given = {"validation": Validation(check), "on_failure": OnFailure(cleanup)}
        self.on_one(place, lambda tx, name: tx.replace(_there(tx, name)._replace(**given)))  # type: ignore[arg-type]

    @rule(place=PLACES, commit=st.sampled_from(COMMITS), passed=st.booleans())
    def check_again(self, place: int, commit: str, passed: bool) -> None:
        found = Recheck(commit, passed)
        self.change(place, "recheck", lambda _tx, task: transitions.recheck(task, found))

    @rule(place=PLACES, why=st.sampled_from([Halt("CONFIG", "CONFIG: no check"), None]))
    def halt(self, place: int, why: Halt | None) -> None:
        self.change(place, "halt", lambda _tx, task: transitions.halt(task, why))

    @rule(place=PLACES)
    def add_what_is_there_already(self, place: int) -> None:
        self.on_one(place, lambda tx, name: tx.add([Task(name)]))

    @rule()
    def die_in_the_middle(self) -> None:
        def half(tx: Tx) -> None:
            tx.add([Task("half-done")])
            raise BrokenError

        self.both(half)

    @rule(seconds=st.sampled_from([1, LEASE / 2, LEASE]))
    def wait(self, seconds: float) -> None:
        self.clock.move(seconds)

    @rule(worker=st.sampled_from(["one", "two"]))
    def begin_a_session(self, worker: str) -> None:
        def begin(tx: Tx) -> object:
            taken = [session.number for session in tx.sessions()]
            number = max([tx.session_count, *taken]) + 1
            if tx.session(worker) is None:
                tx.add_session(Session(number, worker, "here", started_at=timestamps.render(tx.now)))
                tx.count_session(number)
            return number

        self.both(begin)

    @precondition(lambda self: self.stores[0].ask().sessions())
    @rule(place=PLACES, ends=st.booleans())
    def go_on_with_a_session_or_end_it(self, place: int, ends: bool) -> None:
        def act(tx: Tx) -> object:
            session = tx.sessions()[place % len(tx.sessions())]
            if ends:
                tx.remove_session(session.number)
            else:
                tx.replace_session(session._replace(finished_attempts=session.finished_attempts + 1))
            return session

        self.both(act)

    @precondition(lambda self: self.stores[0].ask().sessions())
    @rule(place=PLACES)
    def let_the_next_session_follow(self, place: int) -> None:
        def act(tx: Tx) -> None:
            session = tx.sessions()[place % len(tx.sessions())]
            number = max(tx.session_count, *(each.number for each in tx.sessions())) + 1
            tx.replace_session(session._replace(number=number, finished_attempts=0), session.number)
            tx.count_session(number)
            tx.note_session()

        self.both(act)

    @rule(mode=st.sampled_from(MODES), tasks=st.integers(0, 2), sessions=st.integers(0, 3))
    def configure(self, mode: str, tasks: int, sessions: int) -> None:
        config = SessionConfig(mode, tasks, sessions)  # type: ignore[arg-type]
        self.both(lambda tx: tx.configure(config))

    @rule(adds=st.booleans())
    def propose(self, adds: bool) -> None:
        def act(tx: Tx) -> None:
            if adds:
                tx.propose(Task(f"proposal-{len(tx.proposals()) + 1}", "Do this, too"))
            elif tx.proposals():
                tx.drop_proposal(tx.proposals()[-1].id)

        self.both(act)

    @rule()
    def publish_the_same_again(self) -> None:
        self.both(lambda tx: tx.rewrite())

    @precondition(lambda self: self.number > 3)
    @rule()
    def start_over(self) -> None:
        # New tasks get new ids: a database alone gives a task whose id comes back a higher fence.
        def act(tx: Tx) -> None:
            # It returns the name of the file that keeps the old list, which each store chooses.
            tx.start_over()

        self.both(act)


def _outcome(store: Store, act: Callable[[Tx], object]) -> tuple[object, ...]:
    try:
        with store.transaction() as tx:
            outcome = act(tx), answers(tx), tx.changed
    except (BrokenError, ContractError) as error:
        return (type(error),)
    return outcome


def _there(tx: Tx, task_id: str) -> Task:
    task = tx.task(task_id)
    assert task is not None
    return task


Histories.TestCase.settings = settings(max_examples=4, stateful_step_count=25)
TestHistories = Histories.TestCase


@pytest.mark.release
@pytest.mark.timeout(1800)
class TestManyHistories(Histories.TestCase):  # type: ignore[misc,valid-type]
    """As above, with a hundred of them, and others each time."""

    settings = settings(max_examples=100, stateful_step_count=50)
