"""Machines in directories of their own, with one list in a database and one bare repository as the remote."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness_lib.attempts import remote, turn
from harness_lib.core.context import Context, Merging
from harness_lib.rules import transitions
from harness_lib.state.api import Questions
from tests import forked, postgres
from tests.conftest import CHECKOUT
from tests.run_to_end import Said, run_to_end
from tests.runs.workshop import HARNESS, Workshop, descendants, signal_all
from tests.system.git import gitrepo
from tests.system.git.gitrepo import put, sh
from tests.waiting import until

MAIN = "refs/heads/main"
# The second of two tasks takes away what the first has made; whoever repairs that makes it again.
SPOILING = (
    "case $HARNESS_TASK_ID in task-001) echo > a;; task-002) mv a c;; *) echo > a; echo > b; sleep 0.5;; esac"
)
HOOK = """\
grep -q '{pattern}' || exit 0
mkdir '{reached}' 2>/dev/null || exit 0
while [ ! -e '{reached}/go' ]; do sleep 0.05; done
"""


@dataclass
class Machine(Workshop):
    """A clone with a home and a name of its own; `lease`: seconds of its claims.

    Commands that it adds are trusted by those in `trusting`, as by a team that trusts its members.
    """

    name: str = ""
    lease: float = 30
    joined: str = ""
    trusting: list[Machine] = field(default_factory=list)

    @property
    def env(self) -> dict[str, str]:
        more = {"HARNESS_MACHINE": self.name, "HARNESS_LEASE_SECONDS": f"{self.lease:g}"}
        return {**super().env, **more}

    def __call__(self, *argv: str, **env: str) -> Said:
        """Type one command in a process of its own, by the clock that the database has, too."""
        done = self.harness(*argv, **env)
        for other in self.trusting if argv[0] in ("add", "import") else ():
            if other is not self:
                other.trusts()
        return Said(done.returncode, done.stdout, done.stderr)

    def send(self, number: int) -> None:
        """Send a signal to the last run and all that it has started."""
        run = self.runs[-1].pid
        signal_all((run, *descendants(run)), number)

    def works(self, *files: str) -> str:
        """Claim the next task and make its `files`, as an agent in a chat does; return its id."""
        task = str(self.ok("claim")["task"]["id"])
        for name in files:
            put(self.top / name, "done\n")
        return task

    def dies_typing(self, *argv: str, reached: Path) -> None:
        """Type a command, and die when it has come to what makes `reached`."""
        with (self.home.parent / "typed.log").open("w") as log:
            self.runs.append(forked.start(HARNESS, argv, self.top, self.env, log, log))
        until("the step", reached.exists)
        self.cut_power()

    def dies_working(self, moment: Callable[[], object], *argv: str) -> None:
        """Start a run, and die when the moment has come."""
        self.start(*argv)
        until("the moment", moment)
        self.cut_power()

    def end_claims(self) -> None:
        """End the claims on all tasks in progress, of whatever machine, as when their leases have passed."""
        with self.context("looks").store.transaction("tasks") as tx:
            for task in tx.in_progress():
                tx.replace(transitions.renew(task, now=tx.now, lease_seconds=0))

    @property
    def log_text(self) -> str:
        """Return the log of the list as this machine has it."""
        return (self.top / "harness-progress.txt").read_text()

    def asks(self) -> Questions:
        """Return what can be asked of the database."""
        return self.context("looks").store.ask()

    @property
    def statuses_now(self) -> dict[str, str]:
        """Return the status of each task, from the database."""
        return {task.id: task.status for task in self.asks().search()}


@dataclass
class World:
    """The remote, the database, and the machines that were made so far, which trust each other or not."""

    place: Path
    url: str
    name: str
    machines: list[Machine] = field(default_factory=list)
    trusting: bool = True
    # Further remotes of each machine.
    others: dict[str, Path] = field(default_factory=dict)

    @classmethod
    def make(cls, place: Path) -> World:
        """Make a remote with one commit; skip the test where there is no PostgreSQL."""
        url = postgres.require()
        world = cls(place, url, f"shop-{os.urandom(4).hex()}")
        world.plant()
        return world

    def plant(self) -> None:
        """Make the remote, with one commit."""
        ignored = "*.pyc\nharness-tasks.json*\nharness-progress.txt\n.harness*\n"
        seed = gitrepo.World.make(self.place / "seed", {"README.md": "hello\n", ".gitignore": ignored})
        sh(self.place, "clone", "-q", "--bare", str(seed.top), str(self.remote))

    @property
    def remote(self) -> Path:
        return self.place / "remote.git"

    def machine(self, name: str, *argv: str, lease: float = 30) -> Machine:
        """Add a machine; the first one moves its list to the database, the others join, with `argv`."""
        top = self.place / name / "project"
        top.parent.mkdir()
        sh(self.place, "clone", "-q", str(self.remote), str(top))
        for other, place in self.others.items():
            sh(top, "remote", "add", other, str(place))
        made = Machine(top, self.place / name / "home", name=name, lease=lease)
        if self.machines:
            said = made.ok("store", "join", self.url, "--list", self.name, *argv)
            if self.trusting:
                made.trusts()
        else:
            made.ok("init", "--mode", "concurrent")
            said = made.ok("store", "move", self.url, "--list", self.name, *argv)
        made.joined = str(said["message"])
        self.machines.append(made)
        made.trusting = self.machines if self.trusting else []
        return made

    def pair(self, *, lease: float = 30) -> tuple[Machine, Machine]:
        return self.machine("one", lease=lease), self.machine("two", lease=lease)

    def trust(self) -> None:
        """Let every machine run the commands that the list has now."""
        for machine in self.machines:
            machine.trusts()

    def log(self, form: str = "%s") -> list[str]:
        """Return the lines of the remote's branch, oldest first."""
        return sh(self.remote, "log", "--reverse", f"--format={form}", "main").splitlines()

    def hook(self, name: str, text: str) -> Path:
        """Let the remote run the lines `text` as its hook `name`; return the file of it."""
        return put(self.remote / "hooks" / name, f"#!/bin/sh\n{text}\n", executable=True)

    def stop_at(self, hook: str, pattern: str) -> Path:
        """Let the remote's `hook` wait, once, in a push of `pattern`; return what it makes then."""
        reached = self.place / f"reached-{hook}"
        self.hook(hook, HOOK.format(pattern=pattern, reached=reached))
        return reached

    def restart_database(self) -> None:
        """Let the server lose every connection and whatever was not committed; skip if it is not ours."""
        if postgres.GIVEN:
            pytest.skip("the server belongs to somebody else")
        postgres.own().call("pg_ctl", "-w", "-m", "immediate", "restart")

    def refs(self, kind: str, at: Path | None = None, *, below: str = "refs/harness") -> list[str]:
        """Return the names of the refs of `kind` in the remote, or in the one `at`."""
        prefix = f"{below}/{self.name}/{kind}/"
        return [
            name.removeprefix(prefix)
            for name in sh(at or self.remote, "for-each-ref", "--format=%(refname)", prefix).split()
        ]

    def each_once(self, *tasks: str) -> None:
        """Each of `tasks` is on the branch once, is completed, and nothing unfinished is in the remote."""
        trailers = filter(None, self.log("%(trailers:key=Harness-Task,valueonly,separator=%x2c)"))
        counts = Counter(line.split("/")[1] for line in trailers)
        assert counts == dict.fromkeys(tasks, 1), self.log()
        assert {name: self.machines[0].statuses_now[name] for name in tasks} == dict.fromkeys(
            tasks, "completed"
        )
        assert (self.refs("wip"), self.refs("ready")) == ([], [])

    def each_once_at_no_cost(self, *tasks: str) -> None:
        """As `each_once`, and no attempt was counted."""
        self.each_once(*tasks)
        assert {task.attempts for task in self.machines[0].asks().search()} == {0}

    def close(self) -> None:
        for machine in self.machines:
            machine.close()


def at(machine: Machine) -> Context:
    """Return what a run on `machine` sees."""
    ctx = machine.context()
    ctx.target, ctx.merging = "refs/heads/harness/main", Merging("turns", "origin", MAIN)
    return ctx


def taken(ctx: Context) -> turn.Turn:
    """Return a turn that is still to begin."""
    shared = ctx.store.shared
    assert shared is not None
    return turn.Turn(ctx, remote.of(ctx), shared, lambda: None)


def held(world: World, machine: Machine) -> turn.Turn:
    """Take the turn, so that work begins to wait; note each push of the branch in the file `pushes`."""
    world.hook("update", f'[ "$1" = {MAIN} ] && echo "$3" >> {world.place}/pushes\nexit 0')
    mine = taken(at(machine))
    mine.begin()
    return mine


def pushes(world: World) -> int:
    return len((world.place / "pushes").read_text().split())


def wait_for_merge(world: World, mine: turn.Turn, *tasks: str) -> None:
    """Return once the checked work of `tasks` waits; keep the turn until then, however slow they are."""
    store = world.machines[0].context("looks").store

    def waits() -> bool:
        mine.keep()
        intents = [task.intent and task.intent.action for task in store.ask().search()]
        return len(world.refs("ready")) == len(tasks) and set(intents) == {"merge"}

    until("work that waits", waits)


def hook(machine: Machine, event: str) -> str:
    """Run a hook as an agent does, without a driver at hand; return what it prints."""
    payload = {"hook_event_name": event, "session_id": "one", "cwd": str(machine.top), "source": "startup"}
    return run_to_end(
        [sys.executable, "-I", "-S", str(CHECKOUT / "hooks" / f"harness-{event.lower()}.py")],
        cwd=machine.top,
        env=machine.env,
        stdin=json.dumps(payload),
        check=True,
    ).stdout
