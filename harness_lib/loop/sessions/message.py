"""A message: one Markdown file with frontmatter, which every engine of the protocol reads.

The codec in both directions. A call stands in a fence; where text holds such a fence too, ours are longer
and the frontmatter says how long, so that what the model has only quoted is never run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from harness_lib.loop.disk import number
from harness_lib.loop.piped import Json, as_object, dumps

_OPENING = re.compile(r"^(`{3,})(tool_call id=|thinking\b)", re.MULTILINE)
_LONGEST = re.compile(r"^(`{3,})", re.MULTILINE)
# A call or a thought in its fence, up to the closing one or the end.
_FENCED = (
    r"^%s(?:tool_call id=(\S*) name=(\S+)[^\n]*|thinking(?: signature=(\S*))?$)"
    r"(?:\n(.*?))??(?:\n%s$|\Z)"
)


class Text(NamedTuple):
    """What the model said."""

    text: str


class Thinking(NamedTuple):
    """The model's reasoning, signed by its host."""

    text: str
    signature: str = ""


@dataclass
class Call:
    """A call of a tool; `arguments` is the text that the model wrote."""

    id: str
    name: str
    arguments: str

    # Parsed once: every request repeats the calls of its session.
    @cached_property
    def input(self) -> Json | None:
        """The arguments as an object; None if they are not one."""
        return as_object(self.arguments or "{}")

    @cached_property
    def compact(self) -> str:
        """The arguments as a host accepts them back; invalid ones become {}."""
        return dumps(self.input) if self.input is not None else "{}"


Block = Text | Thinking | Call


@dataclass
class Message:
    """A file of a session: its number, the values of its frontmatter, and its body."""

    seq: int
    role: str
    body: str
    fields: dict[str, str] = field(default_factory=dict)

    @cached_property
    def blocks(self) -> list[Block]:
        """What an assistant's body holds, in order."""
        return parse_blocks(self.body, number(self.fields.get("fence", "")))

    @property
    def said(self) -> str:
        """What the user typed: the body without a skill before it and attached files after it."""
        return self.body.rpartition("\nThe user typed: ")[2].partition("\n\n<file path=")[0]


def parse(seq: int, role: str, text: str) -> Message:
    """Return the message in `text`; `role` is what the file's name says, for files without frontmatter."""
    lines = text.split("\n")
    if lines[0].rstrip("\r") != "---" or "---" not in (line.rstrip("\r") for line in lines[1:]):
        return Message(seq, role, text.removesuffix("\n"))
    end = next(number for number, line in enumerate(lines[1:], 1) if line.rstrip("\r") == "---")
    fields = dict(line.rstrip("\r").split(": ", 1) for line in lines[1:end] if ": " in line)
    body = "\n".join(lines[end + 1 :]).removesuffix("\n")
    return Message(seq, fields.get("role", role), body, fields)


def render(message: Message) -> str:
    """Return the file of `message`; it ends with a line break, without which the original loses a line."""
    fields = {"role": message.role, "seq": f"{message.seq:04d}", **message.fields}
    head = "".join(f"{key}: {' '.join(value.split())}\n" for key, value in fields.items())
    return f"---\n{head}---\n{message.body}\n"


def render_blocks(blocks: list[Block]) -> tuple[str, int]:
    """Return the body of an assistant's message, and the length of its fences."""
    texts = [block.text for block in blocks if isinstance(block, Text | Thinking)]
    thoughts = [block.text for block in blocks if isinstance(block, Thinking)]
    fence = 3
    if any(map(_OPENING.search, texts)) or any(map(_LONGEST.search, thoughts)):
        # The text could be mistaken for a call.
        fence = 1 + max(len(each) for text in texts for each in _LONGEST.findall(text))
    body, ticks = "", "`" * fence
    for block in blocks:
        if isinstance(block, Text):
            body += f"{block.text}\n"
        elif isinstance(block, Thinking):
            body += f"{ticks}thinking signature={block.signature}\n{block.text}\n{ticks}\n"
        else:
            # One line: the original joins the lines of a call without anything between them.
            written = " ".join(block.arguments.splitlines()) if block.input is None else dumps(block.input)
            body += f"\n{ticks}tool_call id={block.id} name={block.name}\n{written}\n{ticks}\n"
    return body, fence


def parse_blocks(body: str, fence: int = 3) -> list[Block]:
    """Return the blocks of `body` whose fences are `fence` long, which may be edited: at least 3."""
    ticks = "`" * max(3, min(fence, len(body)))
    blocks: list[Block] = []
    # The line breaks around a fence belong to it.
    rest, at = f"{body}\n", 0
    pattern = _FENCED % (ticks, ticks)
    for match in re.finditer(pattern, body, re.DOTALL | re.MULTILINE) if ticks in body else ():
        text, at = rest[at : match.start()].removesuffix("\n"), match.end() + 1
        if text.strip():
            blocks.append(Text(text.removesuffix("\n")))
        identity, name, signature, inside = match.groups("")
        call = Call(identity, name, inside.replace("\n", ""))
        blocks.append(call if name else Thinking(inside, signature))
    if rest[at:].strip():
        blocks.append(Text(rest[at:-1].removesuffix("\n")))
    return blocks
