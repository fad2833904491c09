"""A session: a directory of messages, in which one process of hs works at a time, and its events.

A message is one Markdown file with frontmatter, which every engine of the protocol reads. A call stands in a
fence; where text holds such a fence too, ours are longer and the frontmatter says how long, so that what the
model has only quoted is never run.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from harness_lib.errors import EnvSetupError, HeldError, RefusedError
from harness_lib.loop import disk, processes
from harness_lib.loop.piped import Json, as_object, dumps
from harness_lib.system import flock, fs
from harness_lib.text import in_one_line

# The file of a message.
_NAME = re.compile(r"([0-9]+)-.*\.md", re.DOTALL)
# Below a session: which conversation of Claude Code it goes on in.
CONVERSATION = "native/claude.json"
_TITLE = 80
# Far more than messages need; the rest is for the output of tools and the logs of servers.
SIZE_LIMIT = 1024**3
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

    @property
    def named_for_hosts(self) -> Call:
        """The call, with a name that hosts take."""
        name = disk.for_hosts(self.name)
        return self if name == self.name else replace(self, name=name)


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
        """What an assistant's body holds, in order; its fences may be edited: they are at least 3 long."""
        ticks = "`" * max(3, min(disk.number(self.fields.get("fence", "")), len(self.body)))
        blocks: list[Block] = []
        # The line breaks around a fence belong to it.
        rest, at = f"{self.body}\n", 0
        pattern = _FENCED % (ticks, ticks)
        for match in re.finditer(pattern, self.body, re.DOTALL | re.MULTILINE) if ticks in self.body else ():
            text, at = rest[at : match.start()].removesuffix("\n"), match.end() + 1
            if text.strip():
                blocks.append(Text(text.removesuffix("\n")))
            identity, name, signature, inside = match.groups("")
            call = Call(identity, name, inside.replace("\n", ""))
            blocks.append(call if name else Thinking(inside, signature))
        if rest[at:].strip():
            blocks.append(Text(rest[at:-1].removesuffix("\n")))
        return blocks

    @property
    def said(self) -> str:
        """What the user typed: the body without a skill before it and attached files after it."""
        return self.body.rpartition("\nThe user typed: ")[2].partition("\n\n<file path=")[0]


def parse(seq: int, role: str, text: str) -> Message:
    """Return the message in `text`; `role` is what the file's name says, for files without frontmatter."""
    lines = text.split("\n")
    if lines[0].rstrip("\r") != "---" or "---" not in (line.rstrip("\r") for line in lines[1:]):
        return Message(seq, role, text.removesuffix("\n"))
    end = next(at for at, line in enumerate(lines[1:], 1) if line.rstrip("\r") == "---")
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


class Session:
    """The messages in `directory`, in the order of their numbers."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.id = directory, directory.name
        self.conf = disk.read_conf(directory / "session.conf")
        self._parsed: dict[str, tuple[tuple[int, int, int], Message]] = {}
        self._lock: int | None = None

    def __bool__(self) -> bool:
        return self.id != ""

    @cached_property
    def cwd(self) -> Path:
        """Where its tools run; the current directory if that is gone."""
        named = Path(self.conf.get("cwd") or ".")
        return named if named.is_dir() else Path.cwd()

    def hold(self, *, is_new: bool = False) -> int:
        """Lock the session until this process ends. Raises HeldError naming the process that holds it.

        The last holder may have been killed: end the tools it left running, and return their number. One that
        `is_new` has had none.
        """
        if self._lock is not None:
            return 0
        if not is_new:
            self.refuse_links()
        with self.writing():
            descriptor = flock.opened(self.directory / ".lock")
        if not flock.take_now(descriptor):
            holder = os.read(descriptor, 100).decode("ascii", "replace").strip()
            os.close(descriptor)
            message = f"The session {self.id} is held by process {holder or '(unknown)'}."
            raise HeldError(message, "Wait until it ends, or begin another session.")
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        self._lock = descriptor
        with self.writing():
            return 0 if is_new else processes.end_noted(self.directory)

    def refuse_links(self) -> None:
        """Raise RefusedError where a link would let logs or messages be written somewhere else.

        We make none, but a session may have come with a repository.
        """
        with self.writing(), os.scandir(self.directory) as entries:
            links = [entry.name for entry in entries if entry.is_symlink()]
        if links or self.directory.is_symlink():
            name = f"{self.directory / links[0] if links else self.directory}"
            raise RefusedError(
                f"The session {self.id} is not used: {name} is a symbolic link.",
                "Look at where it leads, or begin another session.",
            )

    def release(self) -> None:
        """Let others work in it again."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def goes_on_with(self, provider: str, model: str) -> None:
        """Store the provider and model with which the session is resumed."""
        written = disk.read_conf(self.directory / "session.conf") | {"provider": provider, "model": model}
        self.write("session.conf", disk.render_conf(written).encode())

    def write(self, name: str, data: bytes) -> None:
        """Write the file `name` of the session. Raises EnvSetupError."""
        path = self.directory / name
        with self.writing():
            # A session that a tool has removed is not made again.
            if path.parent != self.directory:
                path.parent.mkdir(mode=0o700, exist_ok=True)
            fs.write(path, data, durable=False, mode=0o600)

    def files(self) -> list[Path]:
        """Return the message files, by number and then by name."""
        return [Path(entry.path) for _, _, entry in self._entries()]

    def messages(self) -> list[Message]:
        """Return every message; a file is read again only when it has changed."""
        messages = []
        # There may be thousands, before each request.
        for seq, name, entry in self._entries():
            with suppress(FileNotFoundError):
                status = entry.stat()
                if not stat.S_ISREG(status.st_mode):
                    continue
                stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
                known = self._parsed.get(name)
                if not known or known[0] != stamp:
                    text = Path(entry.path).read_text(encoding="utf-8-sig", errors="replace")
                    known = stamp, parse(seq, name.removesuffix(".md").partition("-")[2], text)
                    self._parsed[name] = known
                messages.append(known[1])
        return messages

    @property
    def title(self) -> str:
        """The beginning of what was said first, in one line; "" if nothing was."""
        first = next((path for path in self.files() if path.name.endswith("-user.md")), None)
        return in_one_line(parse(0, "user", disk.read_text(first)).said)[:_TITLE] if first else ""

    @property
    def is_answered(self) -> bool:
        """Whether nothing that was said waits for the model; a host may refuse to be asked then."""
        said = (each for each in reversed(self.messages()) if each.role not in {"error", "summary"})
        last = next(said, None)
        return not last or (
            last.role == "assistant" and not any(isinstance(each, Call) for each in last.blocks)
        )

    def append(self, role: str, fields: dict[str, str], body: str) -> Message:
        """Write the next message and return it."""
        with self.writing():
            entries = self._entries()
        seq = 1 + (entries[-1][0] if entries else 0)
        now = datetime.now().astimezone().isoformat(timespec="seconds")
        message = Message(seq, role, body, {"timestamp": now, **fields})
        self.write(f"messages/{seq:04d}-{role}.md", render(message).encode("utf-8", "replace"))
        return message

    @property
    def is_full(self) -> bool:
        """Whether its files together have more than SIZE_LIMIT bytes."""
        size = 0
        for place, _, names in os.walk(self.directory):
            for name in names:
                # It may have been a temporary one.
                with suppress(FileNotFoundError):
                    size += os.lstat(f"{place}{os.sep}{name}").st_size
        return size > SIZE_LIMIT

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turn OSError into EnvSetupError: the run ends, and what was written stays intact."""
        try:
            yield
        except OSError as error:
            hint = "The session is intact; resume it once the directory is writable."
            if not self.directory.is_dir():
                hint = "It has been removed; begin another one."
            message = f"The session {self.directory} cannot be written: {error.strerror}."
            raise EnvSetupError(message, hint) from error

    def _entries(self) -> list[tuple[int, str, os.DirEntry[str]]]:
        """Return number, name and entry of the message files: there may be thousands, before each request."""
        try:
            with os.scandir(self.directory / "messages") as entries:
                # Names differ, so entries are never compared.
                return sorted(
                    (int(name[1]), entry.name, entry)
                    for entry in entries
                    # A link could show the model any file.
                    if (name := _NAME.fullmatch(entry.name)) and not entry.is_symlink()
                )
        except FileNotFoundError:
            return []


class NoSession(Session):
    """What a run without a session has in its place: it is false, and keeps nothing."""

    is_full = False

    def write(self, name: str, data: bytes) -> None:
        """Write nothing."""

    def append(self, role: str, fields: dict[str, str], body: str) -> Message:
        """Return the message, which is written nowhere."""
        return Message(0, role, body, fields)


Listener = Callable[[Json], None]


class Stream:
    """Appends events; foreign programs append to the same file."""

    def __init__(self, path: Path = Path(os.devnull)) -> None:
        self._path = path
        self.listeners: list[Listener] = []
        # The texts of answers in this turn.
        self.said: list[str] = []

    def emit(self, kind: str, **values: object) -> None:
        """Append the event `kind` and tell the listeners."""
        event = {"type": kind, **values}
        self._write(os.O_APPEND, f"{dumps(event)}\n".encode())
        if kind == "text":
            self.said.append(str(values.get("text", "")))
        for listener in self.listeners:
            listener(event)

    def empty(self) -> None:
        """Empty the file, as before every request."""
        self._write(os.O_TRUNC, b"")

    def _write(self, how: int, data: bytes) -> None:
        # An event that cannot be written is not lost: the messages hold it.
        with suppress(OSError):
            # A FIFO would wait for a reader.
            flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            descriptor = os.open(self._path, flags | how, 0o600)
            try:
                os.write(descriptor, data)
            finally:
                os.close(descriptor)
