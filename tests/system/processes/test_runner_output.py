"""What a command prints: kept to a size, told by its tail, and never read through a link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness_lib.errors import EnvSetupError
from harness_lib.system.files import long_logs, printed
from tests.system.processes.running import run


def test_an_older_log_is_replaced(log: Path) -> None:
    run("echo old old old", log)
    run("echo new", log)

    assert log.read_text(encoding="utf-8") == "new\n"


class TestLoud:
    """A check that prints for ever must not fill the disk."""

    def test_it_is_stopped(self, log: Path) -> None:
        finished = run("yes", log, env={**os.environ, "HARNESS_LOG_LIMIT_BYTES": "100000"})

        assert (finished.returncode, finished.timed_out, finished.too_loud) == (None, False, True)
        assert finished.tail.endswith("y\ny")

    def test_one_that_ends_before_we_look_was_too_loud_as_well(self, log: Path) -> None:
        assert run("head -c 5000 /dev/zero", log, max_log=4999).too_loud
        assert run("head -c 5000 /dev/zero", log, max_log=5000).ok

    def test_a_limit_that_is_no_number_is_named(self, log: Path) -> None:
        with pytest.raises(EnvSetupError, match="HARNESS_LOG_LIMIT_BYTES is no number of bytes: 1 GB"):
            run("true", log, env={**os.environ, "HARNESS_LOG_LIMIT_BYTES": "1 GB"})

    @pytest.mark.parametrize("away", ["rm {}", "rm -r $(dirname {})", "rm {0}; echo else > {0}"])
    def test_what_it_prints_is_kept_where_somebody_removes_its_log(self, log: Path, away: str) -> None:
        heard: list[bytes] = []
        reading: list[int] = []

        finished = run(
            f"{away.format(log)}; echo printed",
            log,
            at_start=reading.append,
            at_end=lambda: heard.append(os.pread(reading[0], 99, 0)),
        )

        assert (finished.ok, finished.tail, heard) == (True, "printed", [b"printed\n"])
        assert log.read_text() == "printed\n"

    def test_it_is_stopped_where_somebody_has_removed_its_log(self, log: Path) -> None:
        assert run(f"rm {log}; yes", log, max_log=100_000).too_loud


class TestTail:
    """What an agent reads of a failure is short and plain."""

    def test_the_last_twenty_lines(self, log: Path) -> None:
        assert run("seq 100", log).tail == "\n".join(map(str, range(81, 101)))

    def test_at_most_two_thousand_characters(self, log: Path) -> None:
        assert run("head -c 90000 /dev/zero | tr '\\0' x", log).tail == "x" * printed.TAIL_CHARS

    @pytest.mark.parametrize(
        ("output", "plain"),
        [
            (b"\x1b[31mred\x1b[0m \x1b]0;title\x07end\n", "red end"),
            (b"10%\r20%\r100%\r\ndone\r\n", "100%\ndone"),
            (b"caf\xe9 \xc3\xa9\n", "caf\ufffd \u00e9"),
            (b"a\tb\x00\x08c\n", "a   bc"),
            (b"\xe2\x80\xaegnp\n", "gnp"),
            (b"\n\n", ""),
        ],
    )
    def test_as_a_terminal_would_show_it(self, log: Path, output: bytes, plain: str) -> None:
        log.parent.mkdir(parents=True)
        log.write_bytes(output)

        assert printed.tail_of(log) == plain


def test_of_a_long_log_both_ends_are_kept_with_a_word_on_what_was_between(log: Path) -> None:
    middle = 3 * long_logs.END_BYTES
    heard = []
    loud = f"echo first; head -c {middle} /dev/zero | tr '\\0' 'm'; echo; echo last"

    ended = run(loud, log, at_end=lambda: heard.append(log.stat().st_size))

    kept = log.read_bytes()
    assert heard == [middle + len("first\n\nlast\n")], "what was printed is read before it is cut"
    assert kept.startswith(b"first\nm")
    assert kept.endswith(b"m\nlast\n")
    assert f"\n[harness left out {heard[0] - 2 * long_logs.END_BYTES} bytes here]\n".encode() in kept
    assert len(kept) < 2 * long_logs.END_BYTES + 100
    assert ended.tail.endswith("last")


def test_a_log_that_its_command_made_a_link_is_not_followed(log: Path) -> None:
    other = log.parents[2] / "other"
    with other.open("wb") as file:
        file.truncate(3 * long_logs.END_BYTES)

    ended = run(f"ln -sf {other} {log}; echo printed", log)

    assert other.stat().st_size == 3 * long_logs.END_BYTES
    assert (ended.tail, log.is_symlink()) == ("printed", False)
