"""The tools: what they do, what they tell the model, and how much of its context they may take."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness_lib.loop import discovery, processes, tool_calls
from harness_lib.loop.plugins import Result
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.tools import files
from harness_lib.loop.tools.builtin import Change
from harness_lib.system.processes import child, process
from tests.loop.source_files import write
from tests.loop.tools.conftest import Do
from tests.waiting import until


@pytest.mark.parametrize(
    ("line", "number", "expected"),
    [
        ("alpha", 1, "MX"),
        ("", 2, "WS"),
        ("}", 3, "QR"),
        ("#!/bin/sh", 1, "KX"),
        ("0", 1, "BR"),
        ("alpha \t\r", 1, "MX"),
    ],
)
def test_anchors_are_those_of_the_original(line: str, number: int, expected: str) -> None:
    assert files.anchor_letters(line, number) == expected


@pytest.mark.parametrize("content", ["", "no line break", "two\n\n", "\r\n", "ünïcode\n"])
def test_a_written_file_holds_what_was_given(do: Do, project: Path, content: str) -> None:
    result = do("write_file", path="deep/down/f", content=content)

    assert (project / "deep/down/f").read_bytes() == content.encode()
    assert result.text == f"wrote {len(content.encode())} bytes to deep/down/f"


def test_a_file_of_gigabytes_fills_no_memory(do: Do, project: Path) -> None:
    os.truncate(write(project / "log", ""), 3 * 1024**3)
    assert "bytes, too many for this tool" in do("read_file", path="log", limit=3).text
    assert do("write_file", path="log", content="x").text == "wrote 1 bytes to log"


def test_writing_keeps_mode_and_symlink(do: Do, project: Path) -> None:
    write(project / "real", "old\n")
    (project / "real").chmod(0o755)
    (project / "link").symlink_to("real")

    do("write_file", path="link", content="new\n")

    assert (project / "link").is_symlink()
    assert (project / "real").read_text() == "new\n"
    assert (project / "real").stat().st_mode & 0o777 == 0o755


def test_edits_name_lines_as_they_were_read(do: Do, project: Path) -> None:
    write(project / "f", "a\nb\nc\nd\n")
    at = {line: f"{number}#{files.anchor_letters(line, number)}" for number, line in enumerate("abcd", 1)}
    edits = [
        {"type": "replace_range", "pos": at["b"], "end": at["c"], "content": ["B", f"{at['c']}:C", "more"]},
        {"type": "append_at", "pos": at["d"], "content": "after d"},
        {"type": "prepend_at", "pos": at["a"], "content": "before a"},
        {"type": "append_file", "content": ["last"]},
        {"type": "prepend_file", "content": ["first"]},
    ]

    result = do("edit_file", path="f", edits=edits)

    assert not result.error, result.text
    lines = (project / "f").read_text().splitlines()
    assert lines == ["first", "before a", "a", "B", "C", "more", "d", "after d", "last"]


def test_edits_that_overlap_or_are_stale_change_nothing(do: Do, project: Path) -> None:
    """And a file without a last line break keeps none."""
    write(project / "f", "a\nb")
    pos = f"1#{files.anchor_letters('a', 1)}"
    edit = {"type": "replace_range", "pos": pos, "content": "A"}
    stale = {"type": "append_at", "pos": "2#ZZ", "content": "x"}

    assert do("edit_file", path="f", edits=[edit, edit]).error
    assert "MISMATCH at line 2" in do("edit_file", path="f", edits=[edit, stale]).text
    assert (project / "f").read_text() == "a\nb"
    do("edit_file", path="f", edits=[edit])
    assert (project / "f").read_text() == "A\nb"


def test_lines_are_replaced_in_a_file_of_windows_and_keep_its_line_breaks(do: Do, project: Path) -> None:
    """`read_file` does not show them, so a model writes the ones that it knows."""
    (project / "file").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    assert do("replace", path="file", old="one\ntwo", new="1\n2\n2.5").text == "replaced 1 time in file"
    assert (project / "file").read_bytes() == b"1\r\n2\r\n2.5\r\nthree\r\n"
    # One line is what it is, and what names the breaks is taken at its word.
    do("replace", path="file", old="three", new="3\n4")
    do("replace", path="file", old="1\r\n2\r\n", new="x\n")
    assert (project / "file").read_bytes() == b"x\n2.5\r\n3\n4\r\n"
    # By its anchors, too, where the file has no others.
    (project / "file").write_bytes(b"one\r\ntwo\r\nthree")
    middle = {"type": "replace_range", "pos": f"2#{files.anchor_letters('two', 2)}", "content": "2\n2.5"}
    do("edit_file", path="file", edits=[middle, {"type": "append_file", "content": "3\r\n4"}])
    assert (project / "file").read_bytes() == b"one\r\n2\r\n2.5\r\nthree\r\n3\r\n4"
    (project / "file").write_bytes(b"one\r\ntwo\nthree\n")
    do("edit_file", path="file", edits=[middle])
    assert (project / "file").read_bytes() == b"one\r\n2\n2.5\nthree\n"


@pytest.mark.parametrize("tool", ["read_file", "edit_file", "replace"])
def test_what_is_no_text_file_is_an_error_for_the_model(do: Do, project: Path, tool: str) -> None:
    (project / "binary").write_bytes(b"\xff\xfe\0")
    arguments = {"edits": [{"type": "append_file", "content": "x"}], "old": "a", "new": "b"}

    (project / "loop").symlink_to("loop")

    for path in ("binary", ".", "missing", "", "a\0b", "loop"):
        assert do(tool, path=path, **arguments).error
    assert (project / "binary").read_bytes() == b"\xff\xfe\0"
    assert "is not a regular file" in do("write_file", path=".", content="x").text


def test_a_file_of_one_long_line_is_bounded_too(do: Do, project: Path) -> None:
    write(project / "f", "x" * 1_000_000)

    result = do("read_file", path="f")

    assert result.text.startswith("1#")
    assert "all of it in" in result.text
    assert len(result.text) < 60_000


def test_a_command_has_nothing_to_read_and_runs_in_the_sessions_directory(do: Do, project: Path) -> None:
    assert do("bash", command="cat; pwd") == Result(str(project))


def times_out(do: Do, project: Path, command: str) -> int:
    """Let `command` take too long; return the process id that it has written into the file `pid`."""
    path = project / "pid"
    # On a busy machine a short time may be over before the command has begun.
    for seconds in (1, 10, 60):
        result = do("bash", command=command, timeout=seconds)
        assert result.error
        assert f"timed out after {seconds} seconds" in result.text
        if path.exists() and (pid := path.read_text()):
            return int(pid)
    pytest.fail("the command does not begin")


@pytest.mark.parametrize(
    "command",
    [
        "sleep 300 & echo $! > pid; wait",
        "setsid sleep 300 & echo $! > pid; wait",
        "setsid sh -c 'echo $$ > pid; sleep 300 & wait' & wait",
        "trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done",
        "setsid sh -c 'trap \"\" TERM; echo $$ > pid; while :; do sleep 0.1; done' & wait",
    ],
    ids=["beside it", "in a session of its own", "with a child", "deaf to TERM", "both"],
)
def test_all_that_a_command_has_started_ends_with_its_time(
    do: Do, project: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(child, "GRACE_SECONDS", 0.5)

    pid = times_out(do, project, command)

    # It has its signal; that it is gone takes a moment.
    until("its end", lambda: not process.alive(pid))


def test_what_is_too_long_for_the_model_is_kept_in_the_session(do: Do, run: Runtime) -> None:
    result = do("bash", command="seq 1 20000")

    assert result.text.startswith("1\n2\n")
    assert result.text.endswith("19999\n20000")
    assert len(result.text) < 60_000
    (kept,) = (run.session.directory / "output").iterdir()
    assert str(kept) in result.text
    assert kept.read_text().splitlines() == [str(number) for number in range(1, 20001)]


def test_a_command_may_be_longer_than_an_argument_of_the_system(do: Do, project: Path) -> None:
    text = "a line of töxt\n" * 20_000

    result = do("bash", command=f"cat > made <<'END'\n{text}END\necho $((6 * 7)) $0 $#; exit 3")

    assert result == Result("42 bash 0\n[exit status 3]", error=True)
    assert (project / "made").read_text() == text


def test_a_program_that_cannot_be_started_leaves_no_file_open(project: Path) -> None:
    with pytest.raises(FileNotFoundError):
        processes.run(["no-such-program"], env={}, cwd=project)


@pytest.mark.parametrize("name", ["nope", "../bash", "a/b", "", "x\0y", "a\nb"])
def test_a_tool_that_there_is_not_is_an_error_for_the_model(run: Runtime, name: str) -> None:
    done = tool_calls.execute(run, {"tool_calls": [{"id": "1", "name": name, "input": {}}]})
    assert (done["result"], done["error"]) == (f"error: tool '{name}' not found", True)


def test_a_result_may_take_a_tenth_of_the_models_context(do: Do, run: Runtime) -> None:
    write("models.conf", "small context=10000\n")
    discovery.refresh(run)
    run.model = "small-1"

    fits, exceeds = do("bash", command="printf %4000d 1"), do("bash", command="printf %4001d 1")

    assert len(fits.text) == 4000
    assert "4001 bytes in all, all of it in" in exceeds.text
    assert len(exceeds.text) < 4500


LINE = st.sampled_from(("a", "b", "", "-", "+", "@@ -1 +1 @@", "\\ No newline at end of file"))
FILE = st.builds("{}{}".format, st.lists(LINE, max_size=12).map("\n".join), st.sampled_from(("", "\n")))


@pytest.mark.parametrize("compared", [2000, 3])
@given(old=FILE, new=FILE, before=st.integers(0, 9))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_difference_makes_the_new_text_of_the_old_one(
    monkeypatch: pytest.MonkeyPatch, compared: int, old: str, new: str, before: int
) -> None:
    monkeypatch.setattr(files, "_COMPARED_LINES", compared)
    same, end = "same\n", "end\n"
    old, new = (f"{before * same}{each}{(9 - before) * end}" for each in (old, new))
    head, *lines = files.unified(Change(Path("/f"), old, new)).split("\n")

    assert head == ("edit /f" if old != new else "")
    assert patched(old, lines) == new


def patched(old: str, lines: list[str]) -> str:
    """Return `old` with the changes of the hunks in `lines`."""
    left, made, shown, at = old.splitlines(keepends=True), "", "", 0
    for line in lines:
        if line.startswith("@@"):
            start, count = re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+.* @@", line).groups("1")  # type: ignore[union-attr]
            until = int(start) - (count != "0")
            made, at = made + "".join(left[at:until]), until
        elif line.startswith("\\"):
            made = made.removesuffix("\n") if shown != "-" else made
        else:
            shown = line[0]
            made += f"{line[1:]}\n" if shown != "-" else ""
            at += shown != "+"
    return made + "".join(left[at:])
