"""Show three machines that work on one list: two conflict, one is killed, one is cut off and comes back late.

Each has a directory with a clone, a home and a name of its own. A PostgreSQL, started for the demo, has the
list, and a bare repository is the remote. Only the agent is a script: it waits where the story wants it to.
"""

from __future__ import annotations

import shlex
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from harness_lib import typed
from harness_lib.attempts import remote
from harness_lib.core.context import Context, Say
from harness_lib.errors import EnvSetupError
from harness_lib.system import postgres_server
from harness_lib.system.git import calls
from harness_lib.system.git.repository import Git
from harness_lib.system.install import launcher
from harness_lib.system.processes import child, own_process, owner, process
from harness_lib.task import Task

LIST = "demo"
NAMES = ("ann", "ben", "cleo")
SECONDS = 180.0
ROLES = ("AUTHOR", "COMMITTER")
LEASE = "5"
# Of the scripted agent: ann and ben write into one file, cleo stops half-way, and one in TREE waits for ever.
TOGETHER, HALF, TREE = ("task-001", "task-002"), "task-003", "task-004"
AGENT = """\
say() { echo "$HARNESS_TASK_ID: $1"; }
meet() { touch "$HARNESS_DEMO/$HARNESS_TASK_ID"; until [ -e "$HARNESS_DEMO/$1" ]; do sleep 0.1; done; }
case $HARNESS_TASK_ID in
task-001|task-002)
  if grep -q '<<<<' words; then grep -v '^[<=>][<=>]' words > words.new; mv words.new words; exit; fi
  meet together; echo "$HARNESS_TASK_ID" >> words;;
task-003)
  if [ -e numbers ]; then echo two >> numbers; else echo one > numbers; meet never; fi;;
task-004) if mkdir "$HARNESS_DEMO/tree"; then meet never; fi; echo tree > tree;;
*) cat words numbers tree > all;;
esac
"""
TASKS = (
    ("Write the first word", "grep -q task-001 words"),
    ("Write the second word", "grep -q task-002 words"),
    ("Count to two", "grep -q one numbers && grep -q two numbers"),
    ("Draw a tree", "grep -q tree tree"),
    ("Put all together", "grep -q tree all && grep -q two all"),
)


class _Machine(NamedTuple):
    """A directory with a clone, what its commands see, and where its run prints."""

    name: str
    top: Path
    env: dict[str, str]
    log: Path

    def type(self, show: Say, *argv: str) -> None:
        """Type a command of harness. Raises EnvSetupError: it has failed."""
        show(f"{self.name}$ {typed.harness(*argv)}")
        said = child.ask([*launcher.harness(), *argv], env=self.env, cwd=self.top, seconds=SECONDS)
        if said.code:
            raise EnvSetupError((said.complaint or said.output).strip(), "")

    def start(self, show: Say) -> child.Child:
        """Start an unattended run; what it prints goes to the log."""
        show(f"{self.name}$ {typed.harness('run')}")
        argv = ("run", "--sandbox", "off", "--agent-command", f"sh -c {shlex.quote(AGENT)}")
        with self.log.open("ab") as log:
            return child.start([*launcher.harness(), *argv], env=self.env, cwd=self.top, output=log)

    @property
    def printed(self) -> str:
        """Return what its run has printed."""
        return self.log.read_text("utf-8", "replace") if self.log.exists() else ""

    @property
    def context(self) -> Context:
        """Return what somebody sees who looks on this machine."""
        return Context(env=self.env, cwd=self.top)


def run(ctx: Context, show: Say) -> tuple[Path, list[str]]:
    """Tell the story; return its directory, and what has not happened as promised.

    Raises EnvSetupError: git is too old, or PostgreSQL or its driver is missing.
    """
    calls.require_for_runs(ctx.cwd)
    launcher.add_postgres(ctx.env)
    with postgres_server.running() as server:
        place = Path(tempfile.mkdtemp(prefix="harness-demo-")).resolve()
        story = _Story(ctx, place, server.url, show)
        try:
            story.tell()
            promises = dict(story.promises())
            for promise, kept in promises.items():
                show(f"  {'yes' if kept else 'NO '}  {promise}")
            return place, [promise for promise, kept in promises.items() if not kept]
        finally:
            story.end()


class _Story:
    """The machines, their runs, and what did not come in time."""

    def __init__(self, ctx: Context, place: Path, url: str, show: Say) -> None:
        self._ctx, self._place, self._url, self._show = ctx, place, url, show
        self._remote, self._marks = place / "remote.git", place / "marks"
        self._runs: dict[str, child.Child] = {}
        self._late = ""
        self._missed: list[str] = []
        self._machines = {name: self._machine(name) for name in NAMES}
        self._first = self._machines[NAMES[0]]

    def _machine(self, name: str) -> _Machine:
        env = {
            **owner.without_agent(self._ctx.env),
            "HARNESS_HOME": str(self._place / name / "home"),
            "HARNESS_MACHINE": name,
            "HARNESS_LEASE_SECONDS": LEASE,
            # The demo is the user, who has looked at the commands.
            "HARNESS_TRUST": "1",
            "HARNESS_DEMO": str(self._marks),
        }
        env |= {f"GIT_{role}_NAME": name for role in ROLES}
        env |= {f"GIT_{role}_EMAIL": f"{name}@example.org" for role in ROLES}
        return _Machine(name, self._place / name / "project", env, self._place / name / "run.log")

    def tell(self) -> None:
        """Let everything happen, and say what does."""
        self._begin()
        ann, ben, cleo = self._machines.values()
        for machine, task in zip((ann, ben, cleo), (*TOGETHER, HALF), strict=True):
            self._runs[machine.name] = machine.start(self._show)
            self._until(f"{machine.name} works on {task}", self._mark(task).exists)
        self._until(f"what cleo has done so far of {HALF} is in the remote", lambda: self._refs("wip", HALF))
        self._signal(cleo, own_process.KILL)
        self._show("-- cleo is dead: its run, its agent, everything on it was killed")
        self._mark("together").touch()
        self._until("ann and ben have written into one file: both finish, one after the other", self._both)
        self._until(f"one of them works on {TREE}", self._mark("tree").exists)
        self._until("the list knows on which machine", lambda: self._task(TREE).machine)
        late = self._machines[self._task(TREE).machine or ann.name]
        self._late = late.name
        self._signal(late, own_process.PAUSE)
        self._show(f"-- {late.name} is cut off: it neither answers nor hears")
        self._until(
            f"its lease has ended, and another machine has finished {TREE}",
            lambda: self._task(TREE).status == "completed",
        )
        self._signal(late, own_process.GO_ON)
        self._show(f"-- {late.name} comes back late, and believes that {TREE} is its own")
        alive = [self._runs[name] for name in (ann.name, ben.name)]
        self._until("both runs have ended", lambda: all(run.poll() is not None for run in alive))

    def _begin(self) -> None:
        seed = self._place / "seed"
        for directory in (seed, self._marks, *(machine.top.parent for machine in self._machines.values())):
            directory.mkdir(parents=True)
        git = Git.init(seed)
        git.run("branch", "-M", "main")
        self._clone("--bare", str(seed), str(self._remote))
        for machine in self._machines.values():
            self._clone(str(self._remote), str(machine.top))
        ann, *others = self._machines.values()
        ann.type(self._show, "init", "--mode", "concurrent")
        ann.type(self._show, "store", "move", self._url, "--list", LIST)
        for machine in others:
            machine.type(self._show, "store", "join", self._url, "--list", LIST)
        for number, (title, command) in enumerate(TASKS, 1):
            after = [f"task-{each:03}" for each in range(1, number)] if number == len(TASKS) else []
            depends = [word for each in after for word in ("--depends-on", each)]
            ann.type(self._show, "add", title, "--validate", command, *depends)
        for machine in others:
            machine.type(self._show, "trust", "--yes")

    def _clone(self, *words: str) -> None:
        # Not by `Git.run`, which names its own repository to git.
        argv = ("clone", "--quiet", *words)
        result = calls.call(argv, self._place)
        if result.returncode:
            raise calls.failure(argv, result.returncode, result.stderr)

    def _until(self, what: str, seen: Callable[[], object]) -> None:
        """Wait for an event and say it; without it the story goes on, and the promise is broken."""
        clock = self._ctx.clock
        end = clock.monotonic() + SECONDS
        while not seen():
            if clock.monotonic() > end:
                self._missed.append(what)
                break
            clock.sleep(0.1)
        else:
            self._show(f"   {what}")

    def _mark(self, name: str) -> Path:
        return self._marks / name

    def _refs(self, *parts: str) -> list[str]:
        pattern = "/".join((f"refs/harness/{LIST}", *parts, "*"))
        return Git.open(self._place / "seed").lines("ls-remote", str(self._remote), pattern)

    def _task(self, task_id: str) -> Task:
        task = self._first.context.ask().task(task_id)
        assert task is not None
        return task

    def _both(self) -> bool:
        return all(self._task(each).status == "completed" for each in TOGETHER)

    def _signal(self, machine: _Machine, number: int) -> None:
        """Send signal `number` to the run of a machine, and to all that it has started."""
        pids = [self._runs[machine.name].pid]
        for pid in pids:
            pids += process.children(pid)
        for pid in pids:
            # What git does for a moment may be over.
            with suppress(ProcessLookupError):
                own_process.send(pid, number)

    def promises(self) -> Iterator[tuple[str, bool]]:
        """Yield what is to be true in the end, and whether it is; show the proof."""
        yield from ((missed, False) for missed in self._missed)
        git, tasks = Git.open(self._place / "seed"), self._first.context.ask().search()
        git.run("fetch", "--quiet", str(self._remote), "main")
        counts = Counter(landed.task for landed in remote.landed(git, LIST, "FETCH_HEAD"))
        self._show("")
        self._show("the branch, as the remote has it:")
        for line in git.lines("log", "--reverse", "--format=  %s (%an)", "FETCH_HEAD"):
            self._show(line)
        printed = self._machines[self._late].printed if self._late else ""
        self._show("")
        self._show(f"what the run of {self._late} has printed of {TREE}:")
        for line in printed.splitlines():
            if TREE in line:
                self._show(f"  {line}")
        self._show("")
        ended = [run.poll() for name, run in self._runs.items() if name != NAMES[-1]]
        check = child.ask(
            [*launcher.harness(), "store", "check"], env=self._first.env, cwd=self._first.top, seconds=SECONDS
        )
        conflicts = any("conflicts with what was merged" in each.printed for each in self._machines.values())
        yield "each task is completed", all(task.status == "completed" for task in tasks)
        yield "each is on the branch once", counts == dict.fromkeys((task.id for task in tasks), 1)
        yield "no attempt was counted as failed", not any(task.attempts for task in tasks)
        yield "two machines wrote into the same lines", conflicts
        yield f"{self._late} was told that its lease was lost", f"lease of {TREE} was lost" in printed
        yield "both runs that lived to the end ended well", ended == [0, 0]
        yield "harness store check finds nothing", check.code == 0
        yield "nothing unfinished is in the remote", not self._refs("wip") and not self._refs("ready")

    def end(self) -> None:
        """End what still runs."""
        for name in self._runs:
            self._signal(self._machines[name], own_process.KILL)
            self._runs[name].wait()
