"""Our own plugins as programs, and callers of them; in every turn of these tests they are functions."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness_lib.loop.piped import Json, as_object, as_text, dumps
from tests import forked
from tests.loop.environment import environment
from tests.loop.source_files import write


@dataclass(frozen=True)
class Ran:
    """What a plugin came to: the exit code of the protocol, and what it printed."""

    code: int
    out: str

    @property
    def json(self) -> Json:
        value = as_object(self.out)
        assert value is not None, self.out
        return value


@dataclass
class Ours:
    """Our plugins as `hs hook|tool|provider`, spoken with through flags, standard input and output."""

    env: dict[str, str]
    cwd: Path

    def hook(self, name: str, payload: Json | str) -> Ran:
        return self._run("hook", name, stdin=as_text(payload))

    def tool(self, name: str, flag: str, arguments: Json | None = None) -> Ran:
        return self._run("tool", name, flag, stdin=dumps(arguments or {}))

    def provider(self, name: str, flag: str = "", payload: Json | None = None) -> Ran:
        return self._run("provider", name, *([flag] if flag else []), stdin=dumps(payload or {}))

    def _run(self, *args: str, stdin: str) -> Ran:
        done = forked.run_hs(args, cwd=self.cwd, env=self.env, stdin=stdin)
        return Ran(done.returncode, (done.stdout or done.stderr).removesuffix("\n"))


@pytest.fixture
def ours(project: Path) -> Ours:
    """Return our plugins; the test may change `env` before it calls one."""
    chosen = {"HARNESS_PROVIDER": "openai", "HARNESS_MODEL": "model-one", "HARNESS_LOG": os.devnull}
    return Ours(environment(chosen), project)


MESSAGES = {
    "0001-user": "List files",
    "0002-assistant": 'I look.\n\n```tool_call id=c1 name=bash\n{"command":"ls"}\n```\n',
    "0003-tool_result": "README.md",
}
FIELDS = {"0003-tool_result": "call_id: c1\ntool: bash\nerror: false\n"}


@pytest.fixture
def session(ours: Ours, home: Path, project: Path) -> Path:
    """Return the directory of a session in which our plugins are called: one call, answered."""
    path = home / ".harness/sessions/20260324-143022-12345"
    (path / "messages").mkdir(parents=True)
    (path / "session.conf").write_text(f"id={path.name}\ncwd={project}\n")
    for name, body in MESSAGES.items():
        head = f"role: {name[5:]}\nseq: {name[:4]}\n{FIELDS.get(name, '')}"
        (path / "messages" / f"{name}.md").write_text(f"---\n{head}---\n{body}\n")
    ours.env["HARNESS_SESSION"] = str(path)
    return path


def events(session: Path) -> list[str]:
    """Return the lines of `.stream`."""
    return (session / ".stream").read_text().splitlines()


def fields(path: Path) -> dict[str, Any]:
    """Return the frontmatter of a message file."""
    head = path.read_text().split("---\n")[1]
    return dict(line.split(": ", 1) for line in head.splitlines())


TOOL = """#!/bin/sh
case "$1" in
  --schema) echo '{"name":"mock_tool","description":"a mock tool","input_schema":{"type":"object"}}' ;;
  --exec) echo "mock result" ;;
esac
"""
ANCHOR = re.compile(r"(\d+)#([ZPMQVRWSNKTXJBYH]{2}):(.*)")


@dataclass
class Caller:
    """A program that calls our plugins with the environment of a hook."""

    place: Path
    env: dict[str, str] = field(default_factory=dict)

    @property
    def session(self) -> Path:
        return self.place / "session"

    def run(self, *args: str, stdin: str = "", **env: str) -> Ran:
        done = forked.run_hs(args, cwd=self.place, env=environment({**self.env, **env}), stdin=stdin)
        return Ran(done.returncode, done.stdout.removesuffix("\n"))

    def hook(self, name: str, payload: object = None, provider: str = "mock", **env: str) -> Any:
        ran = self.run("hook", name, stdin=json.dumps(payload or {}), HARNESS_PROVIDER=provider, **env)
        assert ran.code == 0, ran.out
        return ran.json

    def tool(self, tool: str, **arguments: object) -> Ran:
        return self.run("tool", tool, "--exec", stdin=json.dumps(arguments))

    def lines(self, path: Path, **arguments: object) -> list[tuple[str, str, str]]:
        """Return number, letters and text of each line that `read_file` shows."""
        ran = self.tool("read_file", path=str(path), **arguments)
        found = [ANCHOR.fullmatch(line) for line in ran.out.splitlines()]
        return [(match[1], match[2], match[3]) for match in found if match]

    def edit(self, path: Path, **edit: object) -> Ran:
        """Edit `path`; `pos` and `end` may be numbers of lines, whose anchors are looked up."""
        shown = self.lines(path)
        named = {k: "#".join(shown[v - 1][:2]) if isinstance(v, int) else v for k, v in edit.items()}
        return self.tool("edit_file", path=str(path), edits=[named])

    def source(self, name: str = "source") -> Path:
        """Return a source, the only one that is named from now on."""
        path = self.place / name
        path.mkdir(parents=True, exist_ok=True)
        self.env["HARNESS_SOURCES"] = str(path)
        return path

    def says(self, name: str, head: str, body: str) -> None:
        """Write a message into the session."""
        write(self.session / "messages" / f"{name}.md", f"---\nrole: {name[5:]}\n{head}---\n{body}\n")

    def saved(self, role: str = "assistant") -> str:
        """Return the one message of `role` that was written."""
        (path,) = (self.session / "messages").glob(f"*-{role}.md")
        return path.read_text()

    def with_tool(self) -> None:
        """Name a source with one tool, and a session that works in the caller's directory."""
        write(self.source() / "tools/mock_tool", TOOL, 0o755)
        write(self.session / "session.conf", f"cwd={self.place}\n")

    def acp(self, *lines: object) -> list[Any]:
        """Return what `hs acp` answers to the lines."""
        text = "".join(f"{json.dumps({'jsonrpc': '2.0', **line})}\n" for line in lines)  # type: ignore[dict-item]
        ran = self.run("acp", stdin=text)
        assert ran.code == 0
        return [json.loads(line) for line in ran.out.splitlines()]


@pytest.fixture
def caller(tmp_path: Path) -> Caller:
    place = tmp_path / "caller"
    (place / "session/messages").mkdir(parents=True)
    return Caller(place, {"HARNESS_SESSION": str(place / "session"), "HARNESS_LOG": os.devnull})
