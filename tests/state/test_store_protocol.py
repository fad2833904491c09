"""What every kind of store promises, whatever it keeps its list in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from harness_lib.errors import RefusedError, UsageError
from harness_lib.state import api
from harness_lib.state.codec import ContractError
from harness_lib.state.store import Store as FileStore
from harness_lib.system.place.roots import Root
from harness_lib.task import OnFailure, Session, SessionConfig, Task, Validation
from tests import postgres
from tests.state.memorystore.store import MemoryStore
from tests.state.questions import Hands, answers

FIRST, SECOND = Task("task-001", "First"), Task("task-002", "Second", depends_on=("task-001",))


@pytest.fixture(params=["file", "memory", "postgres"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> api.Store:
    """Return a store of each kind that has no list yet."""
    clock = Hands()
    if request.param == "postgres":
        return postgres.store(tmp_path.resolve(), clock)
    if request.param == "memory":
        return MemoryStore(clock=clock)
    return FileStore(Root(tmp_path.resolve()), clock=clock)


@pytest.fixture
def store(empty: api.Store) -> api.Store:
    """Return one with two tasks."""
    empty.begin(SessionConfig(), "Begun for a test")
    with empty.transaction() as tx:
        tx.add([FIRST, SECOND])
    return empty


def members(protocol: type[Protocol]) -> set[str]:  # type: ignore[valid-type]
    return {name for name in (*vars(protocol), *protocol.__annotations__) if not name.startswith("_")}


def test_every_question_is_asked_where_stores_are_compared(store: api.Store) -> None:
    assert set(answers(store.ask())) == members(api.Questions)


def test_a_list_is_begun_once(empty: api.Store) -> None:
    assert not empty.exists()
    assert empty.hooks_are_on() is False
    empty.begin(SessionConfig("concurrent"), "Begun for a test")
    assert empty.exists()
    assert empty.hooks_are_on()
    assert empty.ask().concurrent
    assert [line.partition("] ")[2] for line in empty.log_tail(9)] == ["[SESSION-0] INIT Begun for a test"]
    with pytest.raises(
        RefusedError, match=r"^(This list|/.*/harness-tasks\.json) exists already\.$"
    ) as caught:
        empty.begin(SessionConfig(), "Begun again")
    assert caught.value.hint == "Look at it with: harness status"


def test_the_answers_are_of_one_moment(store: api.Store) -> None:
    before = store.ask()
    with store.transaction() as tx:
        tx.remove("task-002")
        tx.replace(FIRST._replace(title="New"))
        assert store.ask().search() == (FIRST, SECOND)
    assert before.search() == (FIRST, SECOND)
    assert store.ask().search() == (FIRST._replace(title="New"),)


def test_notes_come_from_a_task_itself_its_dependencies_and_the_newest(empty: api.Store) -> None:
    empty.begin(SessionConfig(), "Begun for a test")
    done = [
        Task(f"task-00{n}", "Done", "completed", notes=("a trap",), completed_at=f"2026-01-0{n}T00:00:00Z")
        for n in (1, 2, 3)
    ]
    asks = Task("task-004", "Asks", depends_on=("task-001",), notes=("mine",))
    with empty.transaction() as tx:
        tx.add([*done, asks])

    assert [each.id for each in empty.ask().noted("task-004", 3)] == ["task-004", "task-001", "task-003"]
    assert [each.id for each in empty.ask().noted("task-009", 2)] == ["task-003", "task-002"]


def test_a_check_that_has_passed_on_a_commit_is_known(empty: api.Store) -> None:
    empty.begin(SessionConfig(), "Begun for a test")
    here, elsewhere, check = "a" * 40, "b" * 40, Validation("make check")
    done = Task("task-001", "Done", "completed", validation=check, completed_commit=here)
    asks = Task("task-002", "Asks", validation=check, started_at_commit=here)
    with empty.transaction() as tx:
        tx.add([done, asks])

    found = empty.ask().passed(asks)
    assert found is not None
    assert found.id == done.id
    assert empty.ask().passed(asks._replace(validation=Validation("make"))) is None
    assert empty.ask().passed(asks._replace(started_at_commit=elsewhere)) is None


def test_an_error_publishes_nothing(store: api.Store) -> None:
    def fail() -> None:
        with store.transaction() as tx:
            tx.add([Task("task-003")])
            tx.replace(FIRST._replace(status="completed"))
            assert {task.id for task in tx.claimable()} == {"task-002", "task-003"}
            assert tx.why("task-003").reasons
            tx.remove("task-002")
            tx.add_session(Session(1, "one", "here"))
            tx.propose(Task("p"))
            tx.log("WARN", "never said", 1)
            tx.on_commit(store.disable_hooks)
            raise LookupError

    before = store.stamp()
    with pytest.raises(LookupError):
        fail()
    questions = store.ask()
    assert (questions.search(), questions.sessions(), questions.proposals()) == ((FIRST, SECOND), (), ())
    assert (questions.claimable(), questions.dependents("task-001")) == ((FIRST,), ("task-002",))
    with pytest.raises(UsageError, match="task-003"):
        questions.why("task-003")
    assert store.whole().tasks == (FIRST, SECOND)
    assert store.hooks_are_on()
    assert store.stamp() == before


@pytest.mark.parametrize(
    "change",
    [
        lambda tx: tx.add([FIRST]),
        lambda tx: tx.add([Task("task-003", depends_on=("task-009",))]),
        lambda tx: tx.add([Task("")]),
        # Nothing else changes here.
        lambda tx: tx.replace(SECOND._replace(depends_on=("nobody",))),
    ],
)
def test_what_breaks_the_contract_is_not_published(
    store: api.Store, change: Callable[[api.Tx], None]
) -> None:
    with pytest.raises(ContractError), store.transaction() as tx:
        change(tx)
    assert store.ask().search() == (FIRST, SECOND)


def test_each_command_of_a_check_is_told_and_the_cleanup_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Two:
        def commands(self) -> tuple[tuple[str, str], ...]:
            return (("one", "a"), ("two", "b"))

    monkeypatch.setattr(api, "check_of", lambda _task: Two())
    task = Task("t", on_failure=OnFailure("clean"))
    assert api.TaskCommands.of(task) == (("t", "one", "a", "clean"), ("t", "two", "b", None))
    assert api.TaskCommands.number(task) == api.TaskCommands.number(task._replace(id="of-another-name"))


def test_a_transaction_says_whether_it_changes_anything(store: api.Store) -> None:
    with store.transaction() as tx:
        assert not tx.changed
        tx.log("WARN", "only said", 4)
        assert not tx.changed
        tx.replace(FIRST._replace(title="New"))
        assert tx.changed
    assert store.log_tail(1)[0].endswith("[SESSION-4] WARN only said")


def test_what_follows_a_change_is_called_once_it_is_published(store: api.Store) -> None:
    seen: list[object] = []

    def stumble() -> None:
        raise OSError("no number")

    with store.transaction() as tx:
        tx.remove("task-002")
        tx.on_commit(lambda: seen.append(store.ask().counts().total))
        tx.on_commit(stumble)
        tx.on_commit((Path("/nowhere") / "file").touch)
        assert seen == []
    assert seen == [1]
    warning = "The change is made, but what follows it could not be written: "
    assert tx.warnings == [f"{warning}no number", f"{warning}No such file or directory"]
    assert store.warnings == tuple(tx.warnings)


def test_a_transaction_that_has_ended_only_answers(store: api.Store) -> None:
    with store.transaction() as tx:
        tx.remove("task-002")
    assert tx.search() == (FIRST,)
    changes: tuple[Callable[[], None], ...] = (
        lambda: tx.replace(FIRST),
        lambda: tx.add([SECOND]),
        lambda: tx.remove("task-001"),
        lambda: tx.add_session(Session(1, "one", "here")),
        lambda: tx.log("WARN", "late", 1),
        lambda: tx.on_commit(lambda: None),
    )
    for change in changes:
        with pytest.raises(RuntimeError, match=r"^BUG: a transaction is used after it has ended$"):
            change()


def test_what_is_not_there_is_no_task_to_replace_or_remove(store: api.Store) -> None:
    with store.transaction() as tx:
        with pytest.raises(AssertionError, match="BUG: there is no task"):
            tx.replace(Task("nobody"))
        with pytest.raises(AssertionError, match="BUG: there is no task"):
            tx.remove("nobody")


def test_attempts_of_a_removed_task_stay_counted(store: api.Store) -> None:
    with store.transaction() as tx:
        tx.replace(SECOND._replace(attempts=2))
    with store.transaction() as tx:
        tx.remove("task-002")
    assert store.ask().counts().attempts == 2


def test_a_task_whose_dependency_was_taken_away_is_not_ready(store: api.Store) -> None:
    with store.transaction() as tx:
        tx.replace(FIRST._replace(status="completed"))
        assert tx.claimable() == (SECOND,)
        tx.remove("task-001")
        assert tx.claimable() == ()
        tx.add([FIRST._replace(status="completed")])
        assert tx.claimable() == (SECOND,)
        tx.remove("task-001")
        tx.replace(SECOND._replace(depends_on=()))
        assert tx.claimable() == (SECOND._replace(depends_on=()),)


def test_a_task_that_is_completed_once_more_is_waited_for_no_longer(store: api.Store) -> None:
    done = FIRST._replace(status="completed")
    for first, ready in ((done, "task-002"), (FIRST, "task-001"), (done, "task-002")):
        with store.transaction() as tx:
            tx.replace(first)
        assert [task.id for task in store.ask().claimable()] == [ready]


def test_a_dependency_may_be_named_twice(store: api.Store) -> None:
    for title in ("Twice", "Twice as well"):
        with store.transaction() as tx:
            tx.replace(SECOND._replace(title=title, depends_on=("task-001", "task-001")))
    assert store.ask().dependents("task-001") == ("task-002",)


def test_only_our_own_names_of_tasks_are_counted_on(store: api.Store) -> None:
    with store.transaction() as tx:
        tx.add([Task(name) for name in ("7", "old-task-8", "task-task-9", "task-x", "task-\u0663")])
    assert store.ask().highest_number() == 2


def test_a_list_that_is_started_over_is_empty_and_keeps_its_settings(store: api.Store) -> None:
    config = SessionConfig("concurrent", 3, 4)
    with store.transaction() as tx:
        tx.configure(config)
        tx.count_session(7)
    with store.transaction() as tx:
        name = tx.start_over()
    questions = store.ask()
    assert name == "" or name.startswith(f"{store.list_file.name}.old-")
    assert (questions.counts().total, questions.session_count, questions.settings()) == (0, 0, config)


def test_the_stamp_is_another_after_each_change_and_only_then(store: api.Store) -> None:
    seen = [store.stamp()]
    store.ask()
    assert store.stamp() == seen[0]
    with store.transaction() as tx:
        tx.replace(FIRST._replace(title="Longer than before"))
    seen.append(store.stamp())
    with store.transaction() as tx:
        tx.log("WARN", "said", 1)
    seen.append(store.stamp())
    store.disable_hooks()
    seen.append(store.stamp())
    assert all(seen[place] != each for place, each in enumerate(seen[1:]))


def test_the_log_is_followed_from_now_on(store: api.Store) -> None:
    added = store.log_follow()
    with store.transaction() as tx:
        tx.log("WARN", "one", 1)
        tx.log("WARN", "two", 1)
    assert [next(added)[-3:], next(added)[-3:]] == ["one", "two"]
    for text in ("six", "ten"):
        with store.transaction() as tx:
            tx.log("WARN", text, 1)
        assert next(added)[-3:] == text
    assert [line[-3:] for line in store.log_tail(2)] == ["six", "ten"]
    assert [line[-3:] for line in store.log_tail()] == ["est", "one", "two", "six", "ten"]
    assert store.log_searched() is None


def test_who_follows_the_log_goes_by_its_clock(store: api.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(_clock: Hands, _seconds: float) -> None:
        with store.transaction() as tx:
            tx.log("WARN", "said meanwhile", 1)

    monkeypatch.setattr(Hands, "sleep", write)
    assert next(store.log_follow()).endswith("said meanwhile")


def test_a_list_that_is_as_it_must_be_needs_nothing(store: api.Store) -> None:
    examined = store.examine()
    assert examined.problems == ()
    assert examined.questions is not None
    assert answers(examined.questions) == answers(store.ask())
    before = store.stamp()
    assert store.repair() == ([], [])
    assert store.sweep() == []
    assert list(store.oddities()) == []
    assert store.stamp() == before
