"""Our own plugins as programs; in every turn of these tests they are functions."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness_lib.loop.piped import Json, as_object, as_text, dumps
from tests import forked
from tests.loop.environment import environment


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
    path = home / ".harness" / "sessions" / "20260324-143022-12345"
    (path / "messages").mkdir(parents=True)
    (path / "session.conf").write_text(f"id={path.name}\ncwd={project}\n", encoding="utf-8")
    for name, body in MESSAGES.items():
        head = f"role: {name[5:]}\nseq: {name[:4]}\n{FIELDS.get(name, '')}"
        (path / "messages" / f"{name}.md").write_text(f"---\n{head}---\n{body}\n", encoding="utf-8")
    ours.env["HARNESS_SESSION"] = str(path)
    return path


def events(session: Path) -> list[str]:
    """Return the lines of `.stream`."""
    return (session / ".stream").read_text(encoding="utf-8").splitlines()


def fields(path: Path) -> dict[str, Any]:
    """Return the frontmatter of a message file."""
    head = path.read_text(encoding="utf-8").split("---\n")[1]
    return dict(line.split(": ", 1) for line in head.splitlines())
