"""A bug of ours holds nobody: one line for the person, and the traceback where it can be found."""

from __future__ import annotations

from pathlib import Path

from harness_lib.hookio import bug


def report(root: str | None, text: str) -> str:
    """Return what is said when `text` is no key of an empty table."""
    try:
        {}[text]  # type: ignore[index]
    except KeyError:
        return bug.report("Stop", root)
    raise AssertionError


def test_it_is_told_on_one_line_and_kept_in_full(tmp_path: Path) -> None:
    line = report(str(tmp_path), "boom")

    (file,) = (tmp_path / ".harness").glob("bug-*.txt")
    assert line == (
        f"harness: a bug in its Stop hook, which holds nobody: KeyError: 'boom' (details in {file})\n"
    )
    kept = file.read_text(encoding="utf-8")
    assert kept.startswith("Traceback (most recent call last):\n")
    assert kept.endswith("KeyError: 'boom'\n")


def test_without_a_place_it_is_told_all_the_same() -> None:
    assert report(None, "x" * 400) == (
        f"harness: a bug in its Stop hook, which holds nobody: KeyError: '{'x' * 289} "
        "(no file for the details could be written)\n"
    )
