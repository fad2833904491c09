"""The tools that read and change files: what they do, and what they tell the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.loop.tools import anchors
from tests.loop.tools.conftest import Do


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
    assert anchors.letters(line, number) == expected


def test_a_file_is_read_with_anchors_and_in_parts(do: Do, project: Path) -> None:
    (project / "f").write_text("alpha\n\n}\n", encoding="utf-8")

    assert do("read_file", path="f").text == "1#MX:alpha\n2#WS:\n3#QR:}"
    assert do("read_file", path="f", offset=2, limit=1).text == "2#WS:"


def test_a_long_file_is_read_in_parts_only(do: Do, project: Path) -> None:
    (project / "f").write_text("x\n" * 2001, encoding="utf-8")

    result = do("read_file", path="f")

    assert result.error
    assert "2001" in result.text
    assert "2000" in result.text


@pytest.mark.parametrize("content", ["", "no line break", "two\n\n", "\r\n", "ünïcode\n"])
def test_a_written_file_holds_what_was_given(do: Do, project: Path, content: str) -> None:
    result = do("write_file", path="deep/down/f", content=content)

    assert (project / "deep/down/f").read_bytes() == content.encode()
    assert result.text == f"wrote {len(content.encode())} bytes to deep/down/f"


def test_writing_keeps_mode_and_symlink(do: Do, project: Path) -> None:
    (project / "real").write_text("old\n", encoding="utf-8")
    (project / "real").chmod(0o755)
    (project / "link").symlink_to("real")

    do("write_file", path="link", content="new\n")

    assert (project / "link").is_symlink()
    assert (project / "real").read_text(encoding="utf-8") == "new\n"
    assert (project / "real").stat().st_mode & 0o777 == 0o755


def test_edits_name_lines_as_they_were_read(do: Do, project: Path) -> None:
    (project / "f").write_text("a\nb\nc\nd\n", encoding="utf-8")
    at = {line: f"{number}#{anchors.letters(line, number)}" for number, line in enumerate("abcd", 1)}
    edits = [
        {"type": "replace_range", "pos": at["b"], "end": at["c"], "content": ["B", f"{at['c']}:C", "more"]},
        {"type": "append_at", "pos": at["d"], "content": "after d"},
        {"type": "prepend_at", "pos": at["a"], "content": "before a"},
        {"type": "append_file", "content": ["last"]},
        {"type": "prepend_file", "content": ["first"]},
    ]

    result = do("edit_file", path="f", edits=edits)

    assert not result.error, result.text
    lines = (project / "f").read_text(encoding="utf-8").splitlines()
    assert lines == ["first", "before a", "a", "B", "C", "more", "d", "after d", "last"]


def test_an_edit_of_what_has_changed_changes_nothing(do: Do, project: Path) -> None:
    (project / "f").write_text("a\nb\nc\n", encoding="utf-8")
    good, stale = f"1#{anchors.letters('a', 1)}", f"2#{anchors.letters('x', 2)}"
    edits = [
        {"type": "replace_range", "pos": good, "content": None},
        {"type": "replace_range", "pos": stale, "content": "new"},
    ]

    result = do("edit_file", path="f", edits=edits)

    assert result.error
    assert f"MISMATCH at line 2: expected {stale[2:]}, got {anchors.letters('b', 2)}" in result.text
    assert f">>> 2#{anchors.letters('b', 2)}:b" in result.text
    assert (project / "f").read_text(encoding="utf-8") == "a\nb\nc\n"


def test_edits_that_overlap_change_nothing(do: Do, project: Path) -> None:
    (project / "f").write_text("a\nb\n", encoding="utf-8")
    pos = f"1#{anchors.letters('a', 1)}"
    edit = {"type": "replace_range", "pos": pos, "content": "x"}

    assert do("edit_file", path="f", edits=[edit, edit]).error
    assert (project / "f").read_text(encoding="utf-8") == "a\nb\n"


def test_a_file_without_a_last_line_break_keeps_none(do: Do, project: Path) -> None:
    (project / "f").write_text("a\nb", encoding="utf-8")
    edit = {"type": "replace_range", "pos": f"1#{anchors.letters('a', 1)}", "content": "A"}

    do("edit_file", path="f", edits=[edit])

    assert (project / "f").read_text(encoding="utf-8") == "A\nb"


def test_replace_wants_the_text_once_or_all(do: Do, project: Path) -> None:
    (project / "f").write_text("a b a\n", encoding="utf-8")

    assert do("replace", path="f", old="a", new="x").error
    assert do("replace", path="f", old="z", new="x").error
    assert not do("replace", path="f", old="b", new="B").error
    assert not do("replace", path="f", old="a", new="x", all=True).error
    assert (project / "f").read_text(encoding="utf-8") == "x B x\n"


@pytest.mark.parametrize("tool", ["read_file", "edit_file", "replace"])
def test_what_is_no_text_file_is_an_error_for_the_model(do: Do, project: Path, tool: str) -> None:
    (project / "binary").write_bytes(b"\xff\xfe\0")
    arguments = {"edits": [{"type": "append_file", "content": "x"}], "old": "a", "new": "b"}

    for path in ("binary", ".", "missing", "", "a\0b"):
        assert do(tool, path=path, **arguments).error
    assert (project / "binary").read_bytes() == b"\xff\xfe\0"


def test_a_file_of_one_long_line_is_bounded_too(do: Do, project: Path) -> None:
    (project / "f").write_text("x" * 1_000_000, encoding="utf-8")

    result = do("read_file", path="f")

    assert result.text.startswith("1#")
    assert "all of it in" in result.text
    assert len(result.text) < 60_000
