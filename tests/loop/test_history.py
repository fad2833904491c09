"""The history that a model is told: whatever killed a run, every call is answered once."""

from __future__ import annotations

from harness_lib.loop.sessions.history import INTERRUPTED, Answered, Assistant, User, entries
from harness_lib.loop.sessions.message import Block, Call, Message, render_blocks

ONE, TWO = Call("c1", "bash", "{}"), Call("c2", "bash", "{}")


def assistant(seq: int, *blocks: Block) -> Message:
    return Message(seq, "assistant", render_blocks(list(blocks))[0])


def result(seq: int, call_id: str, text: str = "done") -> Message:
    return Message(seq, "tool_result", text, {"call_id": call_id, "error": "false"})


def user(seq: int, text: str = "hello") -> Message:
    return Message(seq, "user", text)


def test_a_call_without_a_result_was_interrupted() -> None:
    history = entries([user(1), assistant(2, ONE, TWO), result(3, "c1"), user(4, "go on")], {})

    assert history[2:] == [
        Answered(ONE, "done", error=False),
        Answered(TWO, INTERRUPTED, error=True),
        User("go on"),
    ]


def test_results_stand_in_the_order_of_their_calls() -> None:
    history = entries([user(1), assistant(2, ONE, TWO), result(3, "c2", "b"), result(4, "c1", "a")], {})

    assert [entry.text for entry in history if isinstance(entry, Answered)] == ["a", "b"]


def test_a_result_of_no_call_and_a_second_one_are_left_out() -> None:
    history = entries(
        [user(1), assistant(2, ONE), result(3, "c1"), result(4, "c1", "again"), result(5, "c9")], {}
    )

    assert [entry.text for entry in history if isinstance(entry, Answered)] == ["done"]


def test_a_result_behind_a_later_answer_is_not_taken_for_the_calls() -> None:
    history = entries([user(1), assistant(2, ONE), assistant(3, ONE), result(4, "c1")], {})

    assert [entry.text for entry in history if isinstance(entry, Answered)] == [INTERRUPTED, "done"]


def test_empty_messages_and_what_no_model_said_are_left_out() -> None:
    messages = [
        user(1),
        Message(2, "assistant", ""),
        Message(3, "error", "cut"),
        Message(4, "summary", "x"),
        user(5),
    ]

    assert entries(messages, {}) == [User("hello"), User("hello")]


def test_the_native_form_is_replayed_where_there_is_one() -> None:
    native = [{"type": "text", "text": "hi"}]

    (entry,) = entries([assistant(2, ONE)], {2: native})[:1]

    assert entry == Assistant([ONE], native)


def test_a_call_whose_name_no_host_takes_back_is_told_by_another() -> None:
    called = assistant(2, Call("c1", "functions.bash", "{}"))

    history = entries([user(1), called, result(3, "c1")], {2: [{"name": "functions.bash"}]})

    assert history[1] == Assistant([Call("c1", "functions_bash", "{}")], None)
