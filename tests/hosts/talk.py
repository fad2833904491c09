"""What client and model say to each other, in one shape for every wire, and the scripts that play a model.

A script is a generator: it yields what the model says and is sent the next request of the same conversation.
So a whole agent reads from top to bottom, like the user it stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "result"]

# The tool that runs a shell command: its name, and the argument that takes the command.
SHELLS = {"Bash": "command", "exec_command": "cmd", "run_shell_command": "command", "bash": "command"}


@dataclass(frozen=True)
class Call:
    """A tool that the model uses; `namespace` is Codex's."""

    tool: str
    arguments: dict[str, Any]
    namespace: str = ""


@dataclass(frozen=True)
class Say:
    """One turn of the model: text, or tool calls, or both; and how full it says that the context is."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    tokens: int = 10


@dataclass(frozen=True)
class Refusal:
    """No turn of the model but the provider's error: the HTTP status, the body and headers of the answer."""

    status: int
    body: dict[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Message:
    role: Role
    text: str


@dataclass(frozen=True)
class Request:
    """What the server received: the conversation so far, the tools on offer, and the body as it came."""

    messages: tuple[Message, ...]
    tools: frozenset[str]
    body: dict[str, Any] = field(repr=False)

    def said_by(self, role: Role) -> str:
        """Return everything that `role` has said, in order."""
        return "\n".join(message.text for message in self.messages if message.role == role)

    @property
    def everything(self) -> str:
        return "\n".join(message.text for message in self.messages)

    @property
    def last(self) -> str:
        """What has come since the model last spoke."""
        news: list[str] = []
        for message in reversed(self.messages):
            if message.role == "assistant":
                break
            news.insert(0, message.text)
        return "\n".join(news)

    def shell(self, command: str) -> Say:
        """Return the turn that runs `command` with whatever this client calls its shell tool."""
        tool = next(name for name in SHELLS if name in self.tools)
        arguments = {SHELLS[tool]: command}
        if tool in ("Bash", "bash"):
            arguments["description"] = "work"
        return Say(calls=(Call(tool, arguments),))


Script = Generator[Say | Refusal, Request, None]
Actor = Callable[[Request], Script]


def says(*texts: str) -> Actor:
    """Return the model that says these texts one after the other, and then nothing new."""

    def script(_request: Request) -> Script:
        for text in texts:
            yield Say(text)

    return script
