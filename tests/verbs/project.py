"""A project with a task list, and the agents that work on it, each with a real process of its own.

An agent's commands run in this process, through `harness_lib.cli.main.main`, because an interpreter for each
of them would cost more than what it does. What matters about another process is real: the owner of a session
is a living process that a test can kill.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

from harness_lib.cli import main
from harness_lib.core.context import Context
from harness_lib.system.clock import Clock
from harness_lib.system.git import repository
from tests import lasting
from tests.run_to_end import Said
from tests.system.git.gitrepo import Checkout, disk, put, sh

HARNESS_FILES = re.compile(
    r"^(harness-tasks\.json.*|harness-progress\.txt|\.harness-active|\.harness(/.*)?|\.harness-tasks\.json.*)$"
)
LINE = re.compile(
    r"^\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\] \[SESSION-\d+\] "
    r"(INIT|Starting|Completed|ERROR|CHECKPOINT|ROLLBACK|RECOVERY|STATS|LOCK|WARN)( \S.*)?$"
)

# Whether mutmut has broken a function of ours: it is only so in this process, not in those that tests start.
MUTATED = bool(os.environ.get("MUTANT_UNDER_TEST"))


class Time(Clock):
    """The wall clock, moved by `pass_`; the monotonic one hurries once the file `hurry_after` is there."""

    def __init__(self) -> None:
        self.offset = timedelta()
        self.hurry_after: Path | None = None
        self._hurried = 0.0

    def now(self) -> datetime:
        return datetime.now(timezone.utc) + self.offset

    def monotonic(self) -> float:
        if self.hurry_after is not None and self.hurry_after.exists():
            self._hurried += 1.0
        return super().monotonic() + self._hurried

    def pass_(self, **span: float) -> None:
        self.offset += timedelta(**span)


class Stepping(Time):
    """A clock on which a second passes from one look to the next, however fast the machine is."""

    seconds = 0.0

    def monotonic(self) -> float:
        self.seconds += 1
        return self.seconds


@dataclass
class Agent:
    """A worker called `name`, at work in `cwd`; `process` owns its sessions."""

    name: str
    cwd: Path
    clock: Time
    env: Mapping[str, str | None] = field(default_factory=dict)
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.wake()

    def __call__(self, *argv: str, **env: str) -> Said:
        """Type `harness ARGV`."""
        variables = {"HARNESS_WORKER_ID": self.name, "CLAUDE_PID": str(self.process.pid), **self.env, **env}
        out, err = _stream(), _stream()
        clocked = mock.patch.object(main, "Context", partial(Context, clock=self.clock))
        # As a new process: it knows of no commit that git has deleted since the last verb.
        fresh = mock.patch.object(repository, "_commits", set[tuple[Path, str]]())
        with clocked, fresh, placed(self.cwd, variables), redirect_stdout(out), redirect_stderr(err):
            code = main.main(argv)
        return Said(code, _read(out), _read(err))

    def ok(self, *argv: str, **env: str) -> dict[str, Any]:
        """Type it with --json, expect exit 0 and return the reply."""
        said = self(*argv, "--json", **env)
        assert said.code == 0, said.text
        return said.json

    def fails(self, code: int, *argv: str, **env: str) -> dict[str, Any]:
        """Type it with --json, expect exit `code` and return the reply."""
        said = self(*argv, "--json", **env)
        assert said.code == code, (said.code, said.text)
        assert said.json["exit"] == code
        return said.json

    def finishes(self, files: Mapping[str, str | bytes], *, code: int = 0) -> dict[str, Any]:
        """Write `files`, type `finish`, expect exit `code` and return the reply."""
        for name, text in files.items():
            put(self.cwd / name, text)
        return self.fails(code, "finish") if code else self.ok("finish")

    def works(self, files: Mapping[str, str | bytes] | None = None, *, code: int = 0) -> dict[str, Any]:
        """Take a task, write `files`, type `finish`, expect exit `code` and return the reply."""
        self.ok("claim")
        return self.finishes(files or {}, code=code)

    def trusts(self) -> dict[str, Any]:
        """Trust the commands of the list, as the user does in a script."""
        return self.ok("trust", "--yes", HARNESS_TRUST="1")

    def final_check(self) -> dict[str, Any]:
        """Type what is left after the last task, expect that all is well and return the reply."""
        return self.ok("validate", "--all", "--committed")

    def die(self) -> None:
        """End the process that owns the sessions, as a crash would."""
        self.process.kill()
        self.process.wait()

    def wake(self) -> None:
        """Start that process (again: with another pid, as a restarted agent has)."""
        self.process = subprocess.Popen(["sleep", "600"])


@dataclass
class Project(Checkout):
    """The repository at `top` and the list in it."""

    top: Path
    clock: Time = field(default_factory=Time)
    agents: list[Agent] = field(default_factory=list)

    def agent(self, name: str = "agent", cwd: Path | None = None, **env: str | None) -> Agent:
        made = Agent(name, cwd or self.top, self.clock, env)
        self.agents.append(made)
        return made

    def close(self) -> None:
        for agent in self.agents:
            agent.die()

    # -- the list

    @property
    def file(self) -> Path:
        return self.top / "harness-tasks.json"

    @property
    def generations(self) -> list[Path]:
        """What the list could be restored from, but for .bak: its last states, and git's copy."""
        kept = [self.top / ".harness/generations", self.top / ".git/harness/lists"]
        return [path for folder in kept if folder.is_dir() for path in sorted(folder.iterdir())]

    @property
    def state(self) -> dict[str, Any]:
        document = json.loads(self.file.read_text())
        assert isinstance(document, dict)
        return document

    def task(self, task_id: str = "task-001") -> dict[str, Any]:
        return next(task for task in self.state["tasks"] if task["id"] == task_id)

    def edit(self, **fields: Any) -> None:
        """Change fields of the list by hand, as an editor does."""
        self.file.write_text(json.dumps({**self.state, **fields}, indent=2))

    def edit_task(self, task_id: str = "task-001", **fields: Any) -> None:
        self.edit(tasks=[{**t, **(fields if t["id"] == task_id else {})} for t in self.state["tasks"]])

    def write(self, *tasks: Mapping[str, Any], **fields: Any) -> None:
        """Write the list anew, as a legacy agent does; a task is pending unless it says."""
        listed = [{"status": "pending", **task} for task in tasks]
        document = {"version": 2, "tasks": listed, **fields}
        self.file.write_text(json.dumps(document))

    def without_proofs(self) -> None:
        """Let `completed` be believed from here on, as in a list of a harness that wrote no proofs."""
        self.edit(proofs=False)

    def configure(self, **fields: Any) -> None:
        self.edit(session_config={**self.state["session_config"], **fields})

    @property
    def enable_flag(self) -> bool:
        return (self.top / ".harness-active").exists()

    @property
    def log(self) -> list[str]:
        path = self.top / "harness-progress.txt"
        return path.read_text().splitlines() if path.exists() else []

    def grep(self, *words: str) -> list[str]:
        """Return the lines of the log that have all `words`, as `grep | grep` does."""
        return [line for line in self.log if all(word in line for word in words)]

    # -- the repository

    git = Checkout.sh

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    @property
    def files(self) -> dict[str, tuple[str, bytes]]:
        """What stands in the work tree, without the harness's own files."""
        return {name: content for name, content in disk(self.top).items() if not HARNESS_FILES.match(name)}

    def in_commit(self, commit: str = "HEAD") -> list[str]:
        return self.git("ls-tree", "-r", "--name-only", commit).splitlines()

    def refs(self, prefix: str = "refs/harness/rescue/") -> list[str]:
        return self.git("for-each-ref", "--format=%(refname)", prefix).splitlines()

    def commit(self, message: str = "by hand", *, files: Mapping[str, str | bytes] | None = None) -> str:
        """Write `files`, and commit everything."""
        for name, text in (files or {}).items():
            self.put(name, text)
        self.git("add", "-A")
        return self.commit_only(message)

    def commit_only(self, message: str) -> str:
        """Commit what is staged."""
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.head


def make(top: Path, **options: str | bool) -> Project:
    """Return a project with one commit and, unless `bare`, an empty list of `mode`."""
    shutil.copytree(_template(), top, symlinks=True)
    project = Project(top)
    if not options.get("bare"):
        mode = str(options.get("mode", "exclusive"))
        person = project.agent("person")
        person.ok("init", "--mode", mode)
    return project


@cache
def _template() -> Path:
    """Return a repository to copy, which is cheaper than to make one; it has none of git's sample hooks."""
    place = lasting.directory()
    sh(place, "init", "-q", "-b", "main", "--template=", ".")
    put(place / "tracked.txt", "one\n")
    Project(place).commit("Begin")
    return place


# What may be typed behind `add` and `edit`, and the fields of the task then.
TYPED = (
    *("--description", "more", "--priority", "P0", "--depends-on", "task-001", "--validate", "make check"),
    *("--cwd", "sub", "--timeout", "7", "--cleanup", "make clean", "--max-attempts", "5"),
    *("--protect", "tests/**", "--red-first"),
)
FIELDS = {
    "description": "more",
    "priority": "P0",
    "depends_on": ["task-001"],
    "max_attempts": 5,
    "on_failure": {"cleanup": "make clean"},
    "validation": {
        "command": "make check",
        "timeout_seconds": 7,
        "cwd": "sub",
        "protect": ["tests/**"],
        "red_first": True,
    },
}


def begin(agent: Agent, check: str = "test -f done", *options: str) -> None:
    """Add a task with this check and take it."""
    agent.ok("add", "One", "--validate", check, *options)
    agent.ok("claim")


def lose(agent: Agent, *files: str, text: str = "x\n") -> str:
    """Let an attempt of `agent` fail that has made `files`; return the ref that keeps them."""
    begin(agent, "false")
    for name in files:
        put(agent.cwd / name, text)
    return str(agent.fails(1, "finish")["rescue"])


def own_work_tree(project: Project, name: str) -> Agent:
    """Return a worker in a linked worktree of its own."""
    place = project.top.parent / name
    project.git("worktree", "add", "-q", "-b", name, str(place))
    return project.agent(name, place)


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)


def _read(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


@contextmanager
def placed(cwd: Path, env: Mapping[str, str | None]) -> Iterator[None]:
    """Be in `cwd` with `env` for a while; None unsets a variable."""
    before, old = Path.cwd(), dict(os.environ)
    os.chdir(cwd)
    os.environ.update({name: value for name, value in env.items() if value is not None})
    for name in (name for name, value in env.items() if value is None):
        os.environ.pop(name, None)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(old)
        os.chdir(before)


def python(code: str) -> str:
    """Return the shell command that runs `code`."""
    quoted = code.replace("'", "'\"'\"'")
    return f"{shlex.quote(sys.executable)} -I -S -c '{quoted}'"
