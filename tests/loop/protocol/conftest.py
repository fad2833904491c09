"""Our own plugins in both of their forms: as the functions that the loop calls, and as programs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from harness_lib.loop import discovery, plugins, runtime
from harness_lib.loop.failures import HookError, ProviderError
from harness_lib.loop.piped import Json, as_object, as_text, dumps
from harness_lib.loop.providers import hosted
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions.session import Session
from harness_lib.loop.stages import tool_calls
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


class Ours(Protocol):
    """A built-in plugin, called as a function or run as a program."""

    env: dict[str, str]

    def hook(self, name: str, payload: Json | str) -> Ran: ...

    def tool(self, name: str, flag: str, arguments: Json | None = None) -> Ran: ...

    def provider(self, name: str, flag: str = "", payload: Json | None = None) -> Ran: ...


@dataclass
class Functions:
    """The plugins in the table, called in this process."""

    env: dict[str, str]
    cwd: Path
    closing: list[Runtime]

    def hook(self, name: str, payload: Json | str) -> Ran:
        run = self._run()
        stage, _, own = name.partition("/")
        try:
            hook = run.table.entries["hooks.d", stage, own].target
            return Ran(0, as_text(hook(run.at(stage), as_object(payload) or {})))
        except HookError as failure:
            return Ran(1, as_text(failure.result))

    def tool(self, name: str, flag: str, arguments: Json | None = None) -> Ran:
        run = self._run()
        tool = plugins.tool(run, name)
        assert tool is not None
        if flag == "--schema":
            return Ran(0, dumps(tool.schema(run)))
        if flag == "--describe":
            return Ran(0, tool.describe(run))
        result = tool_calls.run(run, name, arguments or {})
        return Ran(int(result.error), result.text)

    def provider(self, name: str, flag: str = "", payload: Json | None = None) -> Ran:
        run = self._run(HARNESS_PROVIDER=name)
        provider = hosted.find_provider(run, name)
        assert provider is not None
        said: dict[str, Callable[[], Ran]] = {
            "--ready": lambda: Ran(int(not provider.ready(run)), ""),
            "--describe": lambda: Ran(0, provider.describe(run)),
            "--env": lambda: Ran(0, provider.environment_help(run).rstrip("\n")),
            "--defaults": lambda: Ran(0, "\n".join(f"{k}={v}" for k, v in provider.defaults(run).items())),
            "": lambda: Ran(0, dumps(provider.ask(run, payload or {}))),
        }
        try:
            return said[flag]()
        except ProviderError as error:
            return Ran(1, str(error))

    def _run(self, **more: str) -> Runtime:
        run = runtime.start({**self.env, **more}, self.cwd)
        discovery.refresh(run)
        directory = self.env.get("HARNESS_SESSION", "")
        run.session = Session(Path(directory)) if directory else None
        self.closing.append(run)
        return run


@dataclass
class Programs:
    """The same as `hs hook|tool|provider`, spoken with through flags, standard input and output."""

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


@pytest.fixture(params=["function", "program"])
def ours(request: pytest.FixtureRequest, project: Path) -> Iterator[Ours]:
    """Return our plugins in each of their forms; the test may change `env` before it calls one."""
    chosen = {"HARNESS_PROVIDER": "openai", "HARNESS_MODEL": "model-one", "HARNESS_LOG": os.devnull}
    env = environment(chosen)
    if request.param == "program":
        yield Programs(env, project)
        return
    functions = Functions(env, project, [])
    yield functions
    for run in functions.closing:
        run.close()


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
