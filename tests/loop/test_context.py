"""What a summary stands for: counted, cut and carried over from the messages alone."""

from __future__ import annotations

import pytest

from harness_lib.loop.sessions import context
from harness_lib.loop.sessions.history import Assistant, User, entries
from harness_lib.loop.sessions.message import Call, Message, Text, render_blocks


def said(seq: int, size: int = 40, role: str = "user", **fields: str) -> Message:
    return Message(seq, role, "x" * size, fields)


def calling(seq: int, *calls: Call, **fields: str) -> Message:
    return Message(seq, "assistant", render_blocks(list(calls))[0], fields)


def test_what_a_host_has_counted_goes_before_a_guess() -> None:
    answer = said(2, 4000, "assistant", tokens_in="700", tokens_out="50")

    assert context.tokens([said(1, 9000), answer, said(3, 400)]) == 700 + 50 + 100
    assert context.tokens([said(1, 400), said(2, 40)]) == 110


def test_a_count_from_before_a_summary_is_the_size_of_what_it_replaced() -> None:
    before = said(2, 80, "assistant", tokens_in="9000", tokens_out="50")
    messages = [said(1), before, said(3, 40, "summary", keep="0002"), said(4, 40)]

    assert context.tokens(messages) == (40 + 80 + 40) // 4


@pytest.mark.parametrize("keep", ["", "two", "-1"])
def test_a_summary_without_a_place_says_nothing(keep: str) -> None:
    messages = [said(1), said(2, 40, "summary", keep=keep), said(3)]

    assert entries(messages, {}) == [User("x" * 40), User("x" * 40)]


def test_a_place_behind_the_summary_hides_nothing_that_came_after_it() -> None:
    messages = [said(1), Message(2, "summary", "short", {"keep": "9999"}), said(3, 4)]

    assert entries(messages, {}) == [User("short"), User("xxxx")]


def test_the_newest_summary_and_what_is_behind_its_place_are_told() -> None:
    answer = Message(3, "assistant", "answer")
    messages = [said(1), Message(2, "summary", "old", {"keep": "1"}), answer, said(4, 4)]
    messages += [Message(5, "summary", "new", {"keep": "0003"}), said(6, 3)]

    assert entries(messages, {}) == [User("new"), Assistant([Text("answer")]), User("xxxx"), User("xxx")]


def test_a_cut_never_parts_a_call_from_its_result() -> None:
    call = calling(3, Call("c1", "bash", "{}"), Call("c2", "bash", "{}"))
    results = [said(seq, 400, "tool_result", call_id=f"c{seq - 3}") for seq in (4, 5)]
    messages = [said(1, 4000), said(2, 4000, "assistant"), call, *results]

    for size in range(400, 8000, 100):
        cut = context.cut(messages, size)
        assert cut is None or cut.keep in {1, 2, 3, 6}, size
    assert context.cut(messages, 1200) == context.Cut(messages[:2], 3)


def test_what_was_asked_last_stays_however_long_it_is() -> None:
    messages = [said(1, 400), said(2, 400, "assistant"), said(3, 400_000)]

    assert context.cut(messages, 1000) == context.Cut(messages[:2], 3)
    assert context.cut(messages[2:], 1000) is None


def test_at_most_twenty_thousand_tokens_stay() -> None:
    messages = [said(seq, 40_000) for seq in range(1, 11)]

    cut = context.cut(messages, 10_000_000)

    assert cut is not None
    assert cut.keep == 9


def test_files_and_skills_are_carried_through_every_summary() -> None:
    skill = '<skill name="deploy">\nAlways ask.\n</skill>'
    calls = calling(
        1,
        Call("a", "read_file", '{"path": "one.py"}'),
        Call("b", "replace", '{"path": "two.py"}'),
        Call("c", "read_file", '{"path": "two.py"}'),
    )
    first = context.carried([calls, Message(2, "tool_result", skill, {"tool": "skill"})])
    second = context.carried(
        [
            Message(3, "summary", f"So it was.\n\n{first}"),
            calling(4, Call("d", "write_file", '{"path": "3"}')),
        ]
    )

    assert first == (
        f"<read-files>\none.py\n</read-files>\n\n<changed-files>\ntwo.py\n</changed-files>\n\n{skill}"
    )
    assert second == first.replace("two.py", "two.py\n3")
