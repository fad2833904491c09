"""A model server on 127.0.0.1, and `hs` as its users start it: a process with its own environment."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness_lib.loop import turn
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.turn import Ending
from harness_lib.loop.wires import http
from tests import forked
from tests.conftest import for_release
from tests.hs.person import Person, person
from tests.loop import in_process as runs_in_process
from tests.loop.environment import environment
from tests.loop.servers.anthropic import Messages
from tests.loop.servers.cache import PromptCache
from tests.loop.servers.openai import OpenAI
from tests.loop.servers.script import ModelServer, Step
from tests.run_to_end import Said, run_to_end

# Runs `hs ARGS` in the test's project; a non-zero exit is an answer too. `session`: without a terminal.
# `through` another command it is started, otherwise forked.
Hs = Callable[..., Said]
Serve = Callable[..., ModelServer]


@dataclass(frozen=True)
class Wire:
    """How a client finds a server: the class of its handlers, and the environment."""

    name: str
    handler: type[Messages | OpenAI]
    path: str

    @property
    def provider(self) -> str:
        """The provider that speaks so."""
        return "anthropic" if self.name == "anthropic" else "openai"

    def environment(self, server: ModelServer) -> dict[str, str]:
        if self.name == "anthropic":
            return {"ANTHROPIC_API_URL": f"{server.address}{self.path}", "ANTHROPIC_API_KEY": "key-of-a-test"}
        return {"OPENAI_API_URL": f"{server.address}{self.path}"}


ANTHROPIC = Wire("anthropic", Messages, "/v1/messages")
CHAT = Wire("chat", OpenAI, "/v1/chat/completions")
RESPONSES = Wire("responses", OpenAI, "/v1/responses")
WIRES = [ANTHROPIC, CHAT, RESPONSES]
DONE = Ending("Done.", failed=False)
# Of a conversation in which the user is asked nothing.
AUTO = ("--approve", "auto")
# For what costs much and is the same on both wires of OpenAI.
OF_EACH_MAKER = [ANTHROPIC, *for_release(CHAT, RESPONSES)]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "project with a space"
    path.mkdir()
    return path


@pytest.fixture
def served() -> dict[str, str]:
    """Return the environment in which `hs` finds the model that was served last."""
    return {}


@pytest.fixture
def hs(project: Path, served: dict[str, str]) -> Hs:
    """Return a callable that runs `hs` without any key of the developer's; its model is that served last."""

    def run(
        *args: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | int = "",
        through: Sequence[str] = (),
        session: bool = False,
        program: str = forked.HS,
    ) -> Said:
        given = environment({**served, **(env or {})})
        options: dict[str, Any] = {"cwd": cwd or project, "env": given, "stdin": stdin}
        if through:
            done = run_to_end([*through, sys.executable, "-m", "harness_lib.hs", *args], **options)
        else:
            done = forked.run_hs(args, program=program, start_new_session=session, **options)
        return Said(done.returncode, done.stdout, done.stderr)

    return run


Started = Callable[..., forked.Forked]


@pytest.fixture
def started(project: Path, served: dict[str, str]) -> Started:
    """Return a callable that starts `hs` and does not wait for its end; its model is that served last."""

    def start(*args: str, **options: Any) -> forked.Forked:
        given = {"cwd": project, "env": environment(served), "stdin": subprocess.DEVNULL, **options}
        return forked.Forked(args, **given)

    return start


@pytest.fixture
def serve(served: dict[str, str]) -> Iterator[Serve]:
    """Return a callable that starts a server with a script; it must have refused nothing in the end."""
    with ExitStack() as servers:

        def start(wire: Wire, *steps: Step) -> ModelServer:
            server = servers.enter_context(ModelServer(wire.handler, list(steps)))
            served.update(wire.environment(server))
            return server

        yield start


Go = Callable[..., tuple[ModelServer, Said]]
Done = Go


@pytest.fixture
def go(hs: Hs, serve: Serve) -> Go:
    """Return a callable that runs `hs go`, or other words, with the steps of a model."""

    def work(*steps: Step, wire: Wire = CHAT, words: Sequence[str] = ("go",), **options: Any) -> Any:
        server = serve(wire, *steps)
        return server, hs(*words, **options)

    return work


@pytest.fixture
def done(go: Go) -> Done:
    """Return one whose model ends with "Done."."""

    def work(*steps: Step, **options: Any) -> tuple[ModelServer, Said]:
        server, answer = go(*steps, **options)
        assert (answer.code, answer.out) == (0, "Done.\n"), answer.err
        return server, answer

    return work


Conversation = Callable[..., AbstractContextManager[Person]]


@pytest.fixture
def conversation(serve: Serve, served: dict[str, str], project: Path) -> Conversation:
    """Return a context in which the user sits at the prompt, and leaves in the end.

    Without steps, the model is that served last.
    """

    @contextmanager
    def talk(
        *steps: Step,
        wire: Wire = CHAT,
        args: Sequence[str] = (),
        task: str = "",
        env: Mapping[str, str] | None = None,
        program: str = forked.HS,
    ) -> Iterator[Person]:
        model = serve(wire, *steps) if steps or not served else None
        words = [task] if task else []
        with person(*args, *words, cwd=project, env={**served, **(env or {})}, program=program) as someone:
            if model:
                someone.model = model
            if not task:
                someone.has_on_screen("You:")
            yield someone
            if someone.process.returncode is None:
                assert someone.leaves("" if task else "\x04") == 0

    return talk


@pytest.fixture(params=WIRES, ids=lambda wire: wire.name)
def wire(request: pytest.FixtureRequest) -> Wire:
    """Each wire in turn."""
    wire = request.param
    assert isinstance(wire, Wire)
    return wire


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let runs inside this process ask three times at most without a pause, and close them in the end."""
    monkeypatch.setattr(http, "ATTEMPTS", 3)
    monkeypatch.setattr(http, "sleep", lambda _: None)
    yield
    while runs_in_process.STARTED:
        runs_in_process.STARTED.pop().close()


Follow = Callable[..., tuple[Runtime, ModelServer, Ending]]


@pytest.fixture
def follow(in_process: None, serve: Serve, project: Path) -> Follow:  # noqa: ARG001
    """Return a callable that lets a run in this process work through steps of a model to the end."""

    def work(
        wire: Wire, *steps: Step, cached: bool = False, **env: str
    ) -> tuple[Runtime, ModelServer, Ending]:
        server = serve(wire, *steps)
        server.cache = PromptCache() if cached else None
        run = runs_in_process.started(project, wire, server, **env)
        return run, server, turn.follow(run)

    return work


def session_of(home: Path | None = None) -> Path:
    """Return the one session in the store of the user's home."""
    (session,) = (home or Path.home()).glob(".harness/sessions/*")
    return session


def bodies(session: Path | None = None) -> list[tuple[str, str]]:
    """Return name and body of each message, of the one session where none is named."""
    files = sorted(((session or session_of()) / "messages").iterdir())
    return [(path.name, path.read_text().split("---\n", 2)[2]) for path in files]


def results_in() -> list[str]:
    """Return what each call of the one session has come to."""
    return [body for name, body in bodies() if "tool_result" in name]
