"""No field is lost on its way through us."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness_lib.state import codec
from harness_lib.task import (
    Attempt,
    Checkpoint,
    Gate,
    Handback,
    Intent,
    Interruption,
    OnFailure,
    State,
    Task,
    Validation,
)


def missing(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yield where `after` lacks something that `before` says; null says nothing."""
    if isinstance(before, dict):
        for key, value in before.items():
            if value is not None:
                yield from missing(value, after.get(key), f"{path}.{key}")
    elif isinstance(before, list) and len(before) == len(after):
        for index, value in enumerate(before):
            yield from missing(value, after[index], f"{path}[{index}]")
    elif before != after:
        yield path


def test_what_is_read_is_written_under_the_same_names(valid: Any) -> None:
    written = codec.encode(codec.decode(valid))

    # A whole number may be written with a point, and stays the same number.
    assert list(missing(valid, written)) == []


def test_nothing_of_a_bare_list_is_written_but_the_fields_of_the_protocol() -> None:
    """What says nothing is left out, so that legacy agents see their own list."""
    (task,) = codec.encode(State(tasks=(Task("a", checkpoints=(Checkpoint(1, 2),)),)))["tasks"]
    config = {"concurrency_mode": "exclusive", "max_tasks_per_session": 20, "max_sessions": 50}

    assert codec.encode(State()) == {
        "version": 2,
        "created": None,
        "session_config": config,
        "tasks": [],
        "session_count": 0,
        "last_session": None,
    }
    assert task == {
        "id": "a",
        "title": "",
        "status": "pending",
        "priority": "P1",
        "depends_on": [],
        "attempts": 0,
        "max_attempts": 3,
        "started_at_commit": None,
        "validation": {"command": None, "timeout_seconds": 300},
        "on_failure": {"cleanup": None},
        "error_log": [],
        "checkpoints": [{"step": 1, "total": 2, "description": "", "timestamp": None}],
        "completed_at": None,
    }


def test_a_record_that_is_not_read_is_the_one_that_its_kind_begins_with() -> None:
    """What a file leaves out is what the record has by itself, in every kind of record."""
    bare: dict[str, Any] = {
        "validation": {},
        "on_failure": {},
        "checkpoints": [{"step": 1, "total": 2}],
        "gate": {},
        "intent": {"action": "commit", "at": "2025-01-01"},
        "handback": {"reason": "x"},
        "interrupted": {},
        "attempt_log": [{"number": 1}],
    }

    (task,) = codec.decode({"tasks": [{"id": "a", "status": "pending", **bare}]}).tasks

    assert (task.validation, task.on_failure, task.gate) == (Validation(), OnFailure(), Gate())
    assert (task.checkpoints, task.attempt_log) == ((Checkpoint(1, 2),), (Attempt(1),))
    assert (task.intent, task.handback) == (Intent("commit", "2025-01-01"), Handback("x"))
    assert task.interrupted == Interruption()
    needs: list[tuple[Any, set[str]]] = [
        (Checkpoint, {"step", "total"}),
        (Handback, {"reason"}),
        (Attempt, {"number"}),
    ]
    for kind, needed in needs:
        assert set(kind._fields) - kind._field_defaults.keys() == needed


RENDERED = """\
{
  "version": 2,
  "created": null,
  "session_config": {"concurrency_mode": "exclusive", "max_tasks_per_session": 20, "max_sessions": 50},
  "tasks": [
    {
      "id": "a",
      "title": "ü \\"quoted\\"",
      "status": "pending",
      "priority": "P1",
      "depends_on": [],
      "attempts": 0,
      "max_attempts": 3,
      "started_at_commit": null,
      "validation": {"command": "true", "timeout_seconds": 300},
      "on_failure": {"cleanup": null},
      "error_log": ["ä", "\\ud800"],
      "checkpoints": [],
      "completed_at": null,
      "x-1": 1.5,
      "x-2": {},
      "x-3": false,
      "x-4": true,
      "x-5": 0.0
    },
    {
      "id": "b",
      "title": "",
      "status": "pending",
      "priority": "P1",
      "depends_on": ["a"],
      "attempts": 0,
      "max_attempts": 3,
      "started_at_commit": null,
      "validation": {"command": null, "timeout_seconds": 300},
      "on_failure": {"cleanup": null},
      "error_log": [],
      "checkpoints": [],
      "completed_at": null
    }
  ],
  "session_count": 0,
  "last_session": null,
  "sessions": [],
  "x-key": "last"
}
"""
EXTRA = {"x-1": 1.5, "x-2": {}, "x-3": False, "x-4": True, "x-5": 0.0}


def test_a_list_is_written_for_people_each_field_of_a_task_on_a_line() -> None:
    first = Task("a", 'ü "quoted"', validation=Validation("true"), error_log=("ä", "\ud800"), extra=EXTRA)
    state = State(tasks=(first, Task("b", depends_on=("a",))), sessions=(), extra={"x-key": "last"})

    assert codec.render(state) == RENDERED
    assert codec.decode_rendered(RENDERED, {})[0] == state


def test_a_list_without_tasks_is_written_on_six_lines() -> None:
    text = codec.render(State())

    assert '\n  "tasks": [],\n' in text
    assert codec.decode_rendered(text, {}) == (State(), [])


def test_what_cannot_be_json_is_never_written() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        codec.render(State(extra={"x": [float("nan")]}))
