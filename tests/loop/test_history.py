"""Messages and the history that a model is told: read, written, and every call answered once."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness_lib.loop.context import INTERRUPTED, Answered, Assistant, Entry, User, entries
from harness_lib.loop.session import Block, Call, Message, Text, Thinking, parse, render, render_blocks
from harness_lib.loop.wires import chat

OF_THE_ORIGINAL = """\
---
role: assistant
seq: 0002
timestamp: 2026-03-24T14:30:22+01:00
model: model-one
provider: anthropic
stop: tool_calls
tokens_in: 10
tokens_out: 5
---
```thinking signature=abc==
hmm
```
Let me look.
---
at it

```tool_call id=toolu_1 name=bash
{"command":
 "ls"}
```
"""

LINES = st.lists(
    st.one_of(
        st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), max_size=20),
        st.sampled_from(
            ["```", "````", "```tool_call id=x name=bash", "```thinking", "---", "", "```python"]
        ),
    ),
    max_size=6,
)
TEXTS = LINES.map("\n".join)
CALLS = st.builds(
    Call,
    id=st.text(alphabet="abc_123", min_size=1),
    name=st.sampled_from(["bash", "read_file"]),
    arguments=st.dictionaries(st.text(max_size=5), TEXTS, max_size=3).map(
        lambda value: __import__("json").dumps(value)
    ),
)


def test_a_file_of_the_original_is_read_as_it_was_meant() -> None:
    message = parse(2, "assistant", OF_THE_ORIGINAL)

    assert message.role == "assistant"
    assert (message.fields["model"], message.fields["stop"]) == ("model-one", "tool_calls")
    call = Call("toolu_1", "bash", '{"command": "ls"}')
    assert message.blocks == [Thinking("hmm", "abc=="), Text("Let me look.\n---\nat it"), call]


def test_a_result_keeps_its_line_breaks_and_a_file_without_frontmatter_is_all_text() -> None:
    message = Message(3, "tool_result", "\n\none\n\n", {"call_id": "c", "error": "true"})

    assert parse(3, "tool_result", render(message)).body == message.body
    # A last line needs no line break.
    assert parse(1, "user", "---\nrole: user\n---\nhello").body == "hello"
    assert parse(1, "user", "hello\nyou\n") == Message(1, "user", "hello\nyou")


QUOTED = "So one writes:\n```tool_call id=x name=bash\n{}\n```\nand it runs."


@example(text=QUOTED, calls=[Call("c1", "bash", '{"command":"ls"}')], thought=QUOTED)
@given(text=TEXTS, calls=st.lists(CALLS, max_size=3), thought=TEXTS)
def test_every_call_and_no_other_comes_back(text: str, calls: list[Call], thought: str) -> None:
    """A call that the model only quotes is text."""
    blocks: list[Block] = [Thinking(thought, "sig"), Text(text), *calls]
    body, fence = render_blocks(blocks)
    written = render(Message(2, "assistant", body, {"fence": str(fence)}))

    read = parse(2, "assistant", written).blocks

    assert [(b.id, b.name, b.input) for b in read if isinstance(b, Call)] == [
        (c.id, c.name, c.input) for c in calls
    ]
    assert [b.text for b in read if isinstance(b, Thinking)] == [thought]
    said = [b.text for b in read if isinstance(b, Text)]
    assert said == ([text] if text.strip() else [])


ONE, TWO = Call("c1", "bash", "{}"), Call("c2", "bash", "{}")


def assistant(seq: int, *blocks: Block) -> Message:
    return Message(seq, "assistant", render_blocks(list(blocks))[0])


def result(seq: int, call_id: str, text: str = "done") -> Message:
    return Message(seq, "tool_result", text, {"call_id": call_id, "error": "false"})


def user(seq: int, text: str = "hello") -> Message:
    return Message(seq, "user", text)


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        # Interrupted.
        ([assistant(2, ONE, TWO), result(3, "c1")], ["done", INTERRUPTED]),
        # In the order of the calls.
        ([assistant(2, ONE, TWO), result(3, "c2", "b"), result(4, "c1", "a")], ["a", "b"]),
        # One of no call, and a second one.
        ([assistant(2, ONE), result(3, "c1"), result(4, "c1", "again"), result(5, "c9")], ["done"]),
        # Behind a later answer it is none of the earlier call.
        ([assistant(2, ONE), assistant(3, ONE), result(4, "c1")], [INTERRUPTED, "done"]),
    ],
)
def test_each_call_has_one_result_its_own_or_that_it_was_interrupted(
    messages: list[Message], told: list[str]
) -> None:
    history = entries([user(1), *messages, user(9, "go on")], {})

    results = [(entry.text, entry.error) for entry in history if isinstance(entry, Answered)]
    assert results == [(text, text == INTERRUPTED) for text in told]
    assert history[-1] == User("go on")


def test_empty_messages_and_what_no_model_said_are_left_out() -> None:
    unsaid = [Message(2, "assistant", ""), Message(3, "error", "cut"), Message(4, "summary", "x")]

    assert entries([user(1), *unsaid, user(5)], {}) == [User("hello"), User("hello")]


def test_the_native_form_is_replayed_where_there_is_one() -> None:
    native = [{"type": "text", "text": "hi"}]

    (entry,) = entries([assistant(2, ONE)], {2: native})[:1]

    assert entry == Assistant([ONE], native)


def test_a_call_whose_name_no_host_takes_back_is_told_by_another() -> None:
    called = assistant(2, Call("c1", "functions.bash", "{}"))

    history = entries([user(1), called, result(3, "c1")], {2: [{"name": "functions.bash"}]})

    assert history[1] == Assistant([Call("c1", "functions_bash", "{}")], None)


def test_on_chat_completions_the_user_never_speaks_twice_in_a_row() -> None:
    """Many models have templates that refuse it, and an answer that was interrupted leaves it so."""
    history: list[Entry] = [User("One."), User("Two."), Assistant([Text("Yes.")]), User("Three.")]
    assert chat.messages(history) == [
        {"role": "user", "content": "One.\n\nTwo."},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "Three."},
    ]


def test_on_chat_completions_an_answer_stands_between_a_tool_and_the_user() -> None:
    """Mistral refuses the session without one: "Unexpected role 'user' after role 'tool'"."""
    call = Call("c1", "bash", "{}")
    history: list[Entry] = [User("One."), Assistant([call]), Answered(call, "cut", error=True), User("Two.")]
    told = " ".join(message["role"] for message in chat.messages(history))
    assert told == "user assistant tool assistant user"
