"""Whether the agent of a session may still be there: proof, signs and silence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness_lib.system.place import session_notes
from harness_lib.system.processes import presence, process

NOW = 2_000_000_000.0
ME, HERE = "an-agent", process.boot_id()


def _record(*, boot_id: str = HERE, host: str = "", pid: int = 0, ago: float = 60.0) -> presence.Record:
    return presence.Record(
        host=host or os.uname().nodename,
        boot_id=boot_id,
        pid=pid,
        pid_started="",
        agent_session_id=ME,
        started=NOW - ago,
    )


@pytest.mark.parametrize(
    ("record", "lives"),
    [
        pytest.param(_record(ago=29 * 60), True, id="a sandbox, silent for less than half an hour"),
        pytest.param(_record(ago=31 * 60), False, id="a sandbox, silent for longer"),
        pytest.param(_record(boot_id="before/pid:[1]"), False, id="a sandbox before the last boot"),
        pytest.param(_record(host="far-away", ago=23 * 3600), True, id="another machine"),
        pytest.param(_record(host="far-away", ago=25 * 3600), False, id="another machine, for a day"),
    ],
)
def test_silence_decides_only_where_no_process_can_be_seen(
    tmp_path: Path, record: presence.Record, lives: bool
) -> None:
    assert presence.may_live(str(tmp_path), record, "", NOW) is lives


def test_a_sign_counts_from_the_moment_it_was_given(tmp_path: Path) -> None:
    presence.show(str(tmp_path), ME)
    sign = session_notes.path(str(tmp_path), "seen", ME)
    os.utime(sign, (NOW - 60, NOW - 60))

    assert presence.may_live(str(tmp_path), _record(ago=9 * 3600), "", NOW)


def test_a_sign_that_cannot_be_given_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / ".harness").write_text("in the way", encoding="utf-8")

    presence.show(str(tmp_path), ME)
