"""Visits of a hook in this process and without a repository, and what stands on the disk before and after."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest  # noqa: TC002 (as in every other file of tests)

from harness_lib.hookio import handler, stop_counter
from harness_lib.hookio.situation import Answer, Tally
from harness_lib.state.filestore.store import Store
from harness_lib.system.place import session_notes
from harness_lib.system.place.roots import Root
from harness_lib.task import Session, SessionConfig, State, Task

ME, OTHER = "id-me", "id-other"
SESSION = Session(3, "me", "host", agent_session_id=ME)
DONE = Task("d", status="completed")
BELL = "hooks"


@dataclass(frozen=True)
class Heard:
    code: int
    out: str
    err: str

    @property
    def reason(self) -> str:
        assert self.code == 0
        said = json.loads(self.out)
        assert set(said) == {"decision", "reason"}
        return str(said["reason"])


Visit = Callable[..., Heard]


def visitor(root: Root, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Visit:
    """Return a callable that visits the list at `root` with fields of a payload."""
    monkeypatch.setattr(sys, "argv", [f"{BELL}/harness-x.py"])
    monkeypatch.chdir("/")

    def call(event: str, /, *argv: str, env: dict[str, str] | None = None, **said: object) -> Heard:
        data = json.dumps({"session_id": ME, "hook_event_name": event, **said}).encode()
        code = handler.run(event, argv, data, str(root.path), env or {})
        printed = capsys.readouterr()
        return Heard(code, printed.out, printed.err)

    return call


def make(root: Root, *tasks: Task, mode: str = "exclusive", **fields: Any) -> None:
    """Make a list of ours, switched on, in which `me` works in session 3; no process stands for that."""
    root.state.unlink(missing_ok=True)
    fields.setdefault("sessions", (SESSION,))
    config = SessionConfig(mode)  # type: ignore[arg-type]
    assert Store(root, timeout=10).create(State(tasks=tasks, session_config=config, **fields)) == ()
    marker(root).touch()


def by_hand(root: Root, *tasks: dict[str, object], **fields: object) -> None:
    """Make a list as the prose does."""
    root.state.write_text(json.dumps({"tasks": tasks, **fields}), encoding="utf-8")
    marker(root).touch()


def marker(root: Root) -> Path:
    return root.path / ".harness-active"


def log(root: Root) -> list[str]:
    return [line.partition("] ")[2] for line in root.log.read_text(encoding="utf-8").splitlines()]


def kept(root: Root, who: str = f"{ME} {BELL}") -> Tally:
    return stop_counter.read(str(root.path), who)


def keep(root: Root, who: str) -> None:
    stop_counter.keep(str(root.path), who, Tally(), Answer("block", progress="p"))


def note(root: Root, kind: Any, session_id: str = ME) -> Path:
    return Path(session_notes.path(str(root.path), kind, session_id))
