"""A message file: what the original wrote is read, and what we write says the same again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness_lib.loop.sessions.message import (
    Block,
    Call,
    Message,
    Text,
    Thinking,
    parse,
    parse_blocks,
    render,
    render_blocks,
)

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

    assert (message.role, message.fields["model"], message.fields["stop"]) == (
        "assistant",
        "model-one",
        "tool_calls",
    )
    assert message.blocks == [
        Thinking("hmm", "abc=="),
        Text("Let me look.\n---\nat it"),
        Call("toolu_1", "bash", '{"command": "ls"}'),
    ]


def test_a_result_keeps_its_line_breaks() -> None:
    message = Message(3, "tool_result", "\n\none\n\n", {"call_id": "c", "error": "true"})

    assert parse(3, "tool_result", render(message)).body == message.body


def test_a_last_line_without_a_line_break_is_not_lost() -> None:
    assert parse(1, "user", "---\nrole: user\n---\nhello").body == "hello"


def test_a_file_without_frontmatter_is_all_text() -> None:
    assert parse(1, "user", "hello\nyou\n") == Message(1, "user", "hello\nyou")


def test_a_call_that_the_model_only_quotes_is_never_run() -> None:
    quoted = "So one writes:\n```tool_call id=x name=bash\n{}\n```\nand it runs."
    blocks: list[Block] = [Text(quoted), Call("c1", "bash", '{"command":"ls"}')]

    body, fence = render_blocks(blocks)

    assert [block for block in parse_blocks(body, fence) if isinstance(block, Call)] == blocks[1:]


@given(text=TEXTS, calls=st.lists(CALLS, max_size=3), thought=TEXTS)
def test_every_call_and_no_other_comes_back(text: str, calls: list[Call], thought: str) -> None:
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
