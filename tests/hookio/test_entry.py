"""The way in: who is at home, where the agent is, and that nothing of ours holds anybody."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest

from harness_lib.hookio import entry, handler


@pytest.fixture
def home_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the root of a legacy list that is switched on; what a visit does to `sys` is undone."""
    root = tmp_path.resolve() / "p"
    root.mkdir()
    (root / "harness-tasks.json").write_text('{"tasks":[{"id":"t1","status":"pending"}]}')
    (root / ".harness-active").touch()
    monkeypatch.setattr(sys, "dont_write_bytecode", sys.dont_write_bytecode)
    monkeypatch.setattr(sys, "pycache_prefix", sys.pycache_prefix)
    return root


def says(data: bytes | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None if data is None else io.TextIOWrapper(io.BytesIO(data)))


def cwd(root: object) -> bytes:
    return json.dumps({"cwd": str(root)}).encode()


@pytest.mark.parametrize("event", ["Stop", "SessionEnd"])
def test_nobody_is_home_without_a_list_that_is_on(home_list: Path, tmp_path: Path, event: str) -> None:
    assert entry._switched_on({}, cwd(tmp_path), event) is None
    for value, root in {"1": None, "yes": None, "0": str(home_list), "": str(home_list)}.items():
        assert entry._switched_on({"HARNESS_DISABLED": value}, cwd(home_list), event) == root


def test_the_end_is_answered_without_the_marker(home_list: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    visits: list[object] = []

    def listens(*args: object) -> int:
        visits.append(args)
        return 7

    monkeypatch.setattr(handler, "run", listens)
    (home_list / ".harness-active").unlink()

    for event, code in (("Stop", 0), ("SessionEnd", 7)):
        says(cwd(home_list), monkeypatch)
        assert entry.answer(event, ["gemini"]) == code
    assert visits == [("SessionEnd", ["gemini"], cwd(home_list), str(home_list), os.environ)]


def test_a_root_that_was_named_comes_first_unless_behind_a_link(home_list: Path, tmp_path: Path) -> None:
    named = {"HARNESS_STATE_ROOT": str(home_list)}

    assert entry._switched_on(named, cwd(tmp_path), "Stop") == str(home_list)
    (tmp_path / "elsewhere").mkdir()
    (home_list / ".harness").symlink_to(tmp_path / "elsewhere")
    assert entry._switched_on(named, cwd(tmp_path), "Stop") is None


@pytest.mark.parametrize(
    "data",
    [
        b'{"cwd":"HERE"}',
        b'{ "x": "say \\"cwd\\": no", "cwd" :\t\r\n "HERE", "y": 1}',
        b'{"cwd": "HERE", "torn',
        b'{"cwd": "HERE", "y": {"cwd": "/"}, "z": "\xff"}',
    ],
)
def test_hosts_send_where_an_agent_is(data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    here = tmp_path / 'a "quoted" \u00e9'
    here.mkdir()
    plain = data.replace(b"HERE", str(tmp_path).encode())
    odd = data.replace(b"HERE", json.dumps(str(here))[1:-1].encode())

    assert entry._cwd({}, plain) == str(tmp_path)
    assert entry._cwd({}, odd) == str(here)


def test_bytes_that_are_no_text_may_name_a_directory(tmp_path: Path) -> None:
    here = os.fsencode(tmp_path) + b"/\xff"
    os.mkdir(here)  # noqa: PTH102 (a name that is no text)

    assert entry._cwd({}, b'{"cwd":"' + here + b'"}') == os.fsdecode(here)


@pytest.mark.parametrize(
    "data", [b"", b"{}", b'{"cwd": 7}', b'{"cwd": "/no/such"}', b'{"cwd": "/\\u0000"}', b'{"cwd": "\\x"}']
)
def test_else_it_is_where_it_started(data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = tmp_path / "started"
    started.mkdir()
    monkeypatch.chdir(started)

    assert entry._cwd({"HARNESS_CWD": str(tmp_path)}, data) == str(tmp_path)
    assert entry._cwd({"HARNESS_CWD": "/no/such"}, data) == str(started)
    assert entry._cwd({}, data) == str(started)
    started.rmdir()
    assert entry._cwd({}, data) == "/"


def test_the_user_who_types_the_name_of_a_hook_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    says(None, monkeypatch)
    assert entry._read() == b""
    monkeypatch.setattr(sys, "stdin", Terminal(io.BytesIO(b"typed")))
    assert entry._read() == b""
    says(b"sent", monkeypatch)
    assert entry._read() == b"sent"


def test_no_more_is_read_than_a_host_would_send(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "LONGEST", 3)
    says(b"12345", monkeypatch)

    assert entry._read() == b"123"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError("full"), ": full\n"),
        (KeyError("boom"), " by a bug in it: KeyError: 'boom' (details in {})\n"),
    ],
)
def test_what_goes_wrong_holds_nobody_and_is_said(
    error: Exception,
    said: str,
    home_list: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fails(*_args: object) -> int:
        raise error

    says(cwd(home_list), monkeypatch)
    monkeypatch.setattr(handler, "run", fails)

    assert entry.answer("Stop", []) == 0
    bugs = [*(home_list / ".harness").glob("bug-*.txt")]
    assert capsys.readouterr() == ("", f"harness: Stop hook disabled{said.format(*bugs)}")
    for bug in bugs:
        kept = bug.read_text()
        assert kept.startswith("Traceback (most recent call last):\n")
        assert kept.endswith("KeyError: 'boom'\n")


@pytest.mark.parametrize("writable", [False, True])
def test_byte_code_is_kept_from_then_on_unless_others_could_write_it(
    home_list: Path, home: Path, monkeypatch: pytest.MonkeyPatch, *, writable: bool
) -> None:
    place = home / "data/harness"
    if writable:
        place.mkdir(parents=True)
        place.chmod(0o777)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    says(cwd(home_list), monkeypatch)
    entry.answer("Stop", [])

    assert sys.dont_write_bytecode is writable
    assert writable or sys.pycache_prefix == str(place / "pycache")


def test_without_a_place_a_bug_is_told_all_the_same() -> None:
    try:
        {}["x" * 400]  # type: ignore[index]
    except KeyError:
        line = entry._bug("Stop", None)

    assert line == (
        f"harness: Stop hook disabled by a bug in it: KeyError: '{'x' * 289} "
        "(no file for the details could be written)\n"
    )
