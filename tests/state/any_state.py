"""Any list there may be: strategies that draw every field of the contract, with keys of others among them."""

from __future__ import annotations

from functools import partial
from typing import Any

from hypothesis import strategies as st

from harness_lib.task import (
    CATEGORIES,
    MODES,
    PRIORITIES,
    STATUSES,
    Checkpoint,
    Gate,
    Intent,
    OnFailure,
    Session,
    SessionConfig,
    State,
    Task,
    Validation,
)

texts = st.text(max_size=12)
shell_texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
moments = st.datetimes().map(lambda moment: moment.strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20))
names = st.from_regex(r"[a-zA-Z0-9_:ä]{1,8}", fullmatch=True)
numbers = st.integers(0, 2**53 - 1)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
extras = st.dictionaries(texts.map(lambda name: f"x-{name}") | st.just("extra"), json_values, max_size=2)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def tuples(strategy: st.SearchStrategy[Any], size: int = 3) -> st.SearchStrategy[Any]:
    return st.lists(strategy, max_size=size).map(tuple)


def records(kind: type, *known: Any, **fields: Any) -> st.SearchStrategy[Any]:
    """Draw records whose other fields are as they are by default; `st.builds` alone would make them up."""
    return st.builds(partial(kind), *known, **fields)


validations = records(
    Validation,
    command=maybe(shell_texts),
    timeout_seconds=st.integers(1, 10000),
    cwd=maybe(shell_texts),
    protect=tuples(shell_texts.filter(bool)),
    red_first=st.booleans(),
    extra=extras,
)
checkpoints = records(Checkpoint, numbers, numbers, texts, maybe(moments), tree=maybe(names), extra=extras)
gates = records(
    Gate,
    maybe(texts),
    maybe(shell_texts),
    maybe(names),
    tuples(shell_texts.filter(bool)),
    maybe(names),
    extra=extras,
)
intents = records(
    Intent,
    st.sampled_from(["commit", "rollback"]),
    moments,
    base=maybe(names),
    rescue=maybe(names),
    category=maybe(st.sampled_from(CATEGORIES)),
    message=maybe(texts),
    outcome=st.sampled_from(["failed", "pending"]),
    extra=extras,
)
sessions = records(
    Session, numbers, texts, texts, pid=maybe(st.integers(1, 2**22)), started_at=maybe(moments), extra=extras
)


@st.composite
def tasks(draw: st.DrawFn) -> tuple[Task, ...]:
    ids = draw(st.lists(names, max_size=4, unique=True))
    build = records(
        Task,
        title=texts,
        status=st.sampled_from(STATUSES),
        priority=st.sampled_from(PRIORITIES),
        depends_on=tuples(st.sampled_from(ids)) if ids else st.just(()),
        attempts=numbers,
        max_attempts=st.integers(1, 99),
        started_at_commit=maybe(names),
        validation=validations,
        on_failure=records(OnFailure, cleanup=maybe(shell_texts), extra=extras),
        error_log=tuples(texts),
        checkpoints=tuples(checkpoints),
        completed_at=maybe(moments),
        description=maybe(texts),
        claimed_by=maybe(texts),
        lease_expires_at=maybe(moments),
        worktree=maybe(shell_texts),
        fence=numbers,
        gate=maybe(gates),
        intent=maybe(intents),
        failed_at=maybe(moments),
        halt=maybe(texts),
        extra=extras,
        id=st.just("replaced below"),
    )
    return tuple(Task(name, **_fields(draw(build))) for name in ids)


def _fields(task: Task) -> dict[str, Any]:
    return {name: getattr(task, name) for name in Task._fields if name != "id"}


states = records(
    State,
    created=maybe(moments),
    session_config=records(
        SessionConfig,
        concurrency_mode=st.sampled_from(MODES),
        max_tasks_per_session=numbers,
        max_sessions=numbers,
        extra=extras,
    ),
    tasks=tasks(),
    session_count=numbers,
    last_session=maybe(moments),
    sessions=maybe(tuples(sessions)),
    extra=extras,
)
