"""A project rich in things that could be lost, agents that work in it, and copies of it to die in."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from harness_lib.system.processes import process
from tests import forked
from tests.crash import contents
from tests.crash.effects import Place
from tests.run_to_end import Said

CHECKOUT = Path(__file__).resolve().parents[2]
WORKER = "crash-worker"
OTHER_WORKER = "another-worker"
TASK = "task-001"


def _long_ago() -> float:
    return time.time() - 2 * 24 * 3600


@dataclass(frozen=True)
class Answer(Said):
    """How a verb ended, what it said, and its effects."""

    noted: list[dict[str, Any]]


class Agent:
    """A process that types verbs; `end` is its death, and leaves nobody who could come back."""

    def __init__(self, world: World, worker: str) -> None:
        self._world = world
        self._worker = worker
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(100)
        self._socket.connect(str(world.door))
        self._talk: TextIO = self._socket.makefile("rw", encoding="utf-8")
        self.pid = int(json.loads(self._talk.readline()))

    def type(
        self,
        *argv: str,
        die_at: tuple[str, int, str] | None = None,
        noting: bool = False,
        ends: Collection[int] | None = None,
    ) -> Answer:
        """Type a verb in the project, and expect one of the exit codes `ends`; it may die on the way."""
        # Commits of a killed command must be old, too, before they are known to be nobody's.
        env = {
            **os.environ,
            "HARNESS_WORKER_ID": self._worker,
            "GIT_COMMITTER_DATE": f"@{_long_ago():.0f} +0000",
        }
        cwd = str(self._world.tree)
        order = {"argv": argv, "cwd": cwd, "env": env, "die_at": die_at, "noting": noting}
        print(json.dumps(order), file=self._talk, flush=True)
        answer = Answer(**json.loads(self._talk.readline()))
        said = f"{argv[0]} ended with {answer.code}: {answer.out}{answer.err}"
        assert ends is None or answer.code in ends, said
        return answer

    def end(self) -> None:
        self._talk.close()
        self._socket.close()
        while process.alive(self.pid):
            time.sleep(0.001)

    def __enter__(self) -> Agent:  # noqa: PYI034 (`Self` came with Python 3.11)
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


@dataclass
class World:
    """The project of a test, the way to its agents, and what was true before the attempt.

    The work is done in `tree`, which is the project itself until `share` makes a linked work tree.
    """

    project: Path
    door: Path
    tree: Path = field(init=False)
    branch: str = "main"
    base: str = ""
    own_commits: list[str] = field(default_factory=list)
    lasting: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tree = self.project

    @property
    def is_shared(self) -> bool:
        return self.tree != self.project

    @property
    def place(self) -> Place:
        return Place(self.project)

    def git(self, *args: str, env: Mapping[str, str] | None = None, check: bool = True) -> str:
        done = subprocess.run(
            ["git", *args],
            cwd=self.tree,
            env={**os.environ, **(env or {})},
            capture_output=True,
            check=False,
        )
        assert not check or done.returncode == 0, f"git {' '.join(args)}: {os.fsdecode(done.stderr)}"
        return os.fsdecode(done.stdout)

    def put(self, files: Mapping[str, bytes | None]) -> None:
        """Write `files`; None removes."""
        for name, content in files.items():
            path = self.path(name)
            if content is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def path(self, name: str) -> Path:
        """Return where `name` is: the list and the repository in the project, all else in the work tree."""
        kept = name.startswith((".git/", ".harness", "harness-"))
        return (self.project if kept else self.tree) / name

    def agent(self, worker: str = WORKER) -> Agent:
        return Agent(self, worker)

    def typed(self, *argv: str) -> None:
        """Let an agent type a verb that passes, and die."""
        with self.agent() as agent:
            agent.type(*argv, ends={0})

    # -- what a test prepares -------------------------------------------------------------------------------

    def make_project(self, check: str) -> None:
        """Make the repository, with the user's things beside it, and a list of two tasks."""
        self.project.mkdir()
        self.git("init", "-q")
        self.put(contents.TRACKED)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "Begin")
        self.git("branch", "other")
        self.put({"README.md": b"set aside\n"})
        self.git("stash", "push", "-q", "-m", "the user's stash")
        self.git("config", "user.nickname", "kept")
        self.git("tag", "-a", "-m", "A tag", "v1")
        self.git("pack-refs", "--all")
        self.put({**contents.BEFORE, **contents.IGNORED})
        self.base = self.git("rev-parse", "HEAD").strip()
        with self.agent() as agent:
            for argv in (
                ("init", "--no-final-check"),
                ("add", "The first", "--validate", check, "--cleanup", contents.CLEANUP),
                ("add", "The second", "--validate", f"test -f {contents.SOLUTION}", "--depends-on", TASK),
            ):
                agent.type(*argv, ends={0})
        self.lasting = self.facts()

    def share(self) -> None:
        """Let many share the list: from here on, work is done in a linked work tree with all its things."""
        self.typed("edit", "--mode", "concurrent")
        # Where git does not look, and where it is copied with the project.
        tree, self.branch = self.path("ignored/tree"), "shared"
        self.git("worktree", "add", "-q", "-b", self.branch, str(tree))
        self.tree = tree
        self.put({**contents.BEFORE, **contents.IGNORED})
        self.lasting = self.facts()

    def claim(self) -> None:
        """Let an agent begin the first task, and die before it has done anything."""
        with self.agent() as agent:
            for verb in ("start", "claim"):
                agent.type(verb, ends={0})

    def attempt(self) -> None:
        """Do what an attempt does: commit some, stage some, edit, delete, and make files of odd names."""
        self.put(contents.COMMITTED)
        self.git("add", "--", *contents.COMMITTED)
        self.git("commit", "-q", "-m", f"{TASK}: a commit of its own")
        self.own_commits = self.git("rev-list", f"{self.base}..HEAD").split()
        self.put({name: content for name, content in contents.MADE.items() if name not in contents.COMMITTED})
        self.git("add", "--", "staged.txt")
        self.path("src/run.sh").chmod(0o755)
        self.put({**contents.CHANGED_BEFORE, **contents.CHANGED_IGNORED})

    def facts(self) -> dict[str, object]:
        """Return what no attempt and no recovery may change."""
        refs = self.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        ours = ("refs/harness/", "refs/heads/harness/", f"refs/heads/{self.branch} ")
        return {
            "refs": [ref for ref in refs if not ref.startswith(ours)],
            "stash": self.git("stash", "list"),
            "config": self.path(".git/config").read_bytes(),
            "HEAD": (self.path(".git/HEAD").read_bytes(), self.git("symbolic-ref", "HEAD")),
        }

    # -- copies ----------------------------------------------------------------------------------------------

    def save(self, template: Path) -> None:
        """Keep the project as it is now; nobody may be at work in it."""
        shutil.copytree(self.project, template, symlinks=True)

    def load(self, template: Path, agent: Agent | None = None) -> None:
        """Put the project back as it was saved, with `agent` in the place of the one who had a session."""
        shutil.rmtree(self.project)
        self.remove_seed_locks()
        shutil.copytree(template, self.project, symlinks=True)
        if agent is not None:
            self._hand_over(agent)

    def _hand_over(self, agent: Agent) -> None:
        """Only the dead can be copied: give the open session, and its lock directory, to a living agent."""
        file = self.path("harness-tasks.json")
        state = json.loads(file.read_bytes())
        owner = process.find(agent.pid)
        assert owner is not None
        for session in state["sessions"]:
            session.update(pid=agent.pid, pid_started=owner.started)
            if not self.is_shared:
                self.place.seed_lock.mkdir(exist_ok=True)
                (self.place.seed_lock / "pid").write_text(f"{agent.pid}\n", encoding="ascii")
        file.write_text(json.dumps(state))

    def let_leases_end(self) -> None:
        """Let more time pass than a claim is good for; a list for one session has no leases."""
        file = self.path("harness-tasks.json")
        state = json.loads(file.read_bytes())
        leased = [task for task in state["tasks"] if task.get("lease_expires_at")]
        for task in leased:
            task["lease_expires_at"] = "2025-07-01T10:00:00Z"
        if leased:
            file.write_text(json.dumps(state))

    def seed_locks(self) -> list[Path]:
        """Return the lock directory of the legacy protocol, and what was moved out of its way."""
        return sorted(self.place.seed_lock.parent.glob(f"{self.place.seed_lock.name}*"))

    def remove_seed_locks(self) -> None:
        for directory in self.seed_locks():
            shutil.rmtree(directory)

    def let_time_pass(self) -> None:
        """Make what the dead left old enough to be known as theirs: two days have passed for it."""
        left = [*self.project.glob(".*.tmp"), *self.path(".harness").rglob(".*.tmp")]
        for git_dir in (self.place.git_dir, *self.place.git_dir.glob("worktrees/*")):
            left += [*git_dir.glob("harness-scratch-*"), *git_dir.glob(".*.tmp")]
        for path in (*left, *self.seed_locks()):
            os.utime(path, (_long_ago(), _long_ago()), follow_symlinks=False)


@contextmanager
def opened(tmp: Path) -> Iterator[World]:
    """Yield a world with agents in it, and end them."""
    world = World(tmp / "project", tmp / "door")
    with inhabited(world):
        yield world


@contextmanager
def inhabited(world: World) -> Iterator[None]:
    """Let there be agents in `world`, and end them."""
    driver = forked.Forked(
        [str(world.door), str(world.project)],
        program="import runpy; runpy.run_module('tests.crash.driver', run_name='__main__')",
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "ready\n"
        yield
    finally:
        driver.communicate()
        world.remove_seed_locks()
