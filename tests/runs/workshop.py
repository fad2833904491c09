"""A project for `harness run`, and agents that are scripts: what one does stands in its task's description.

The script reads its brief as a real agent would and does what the lines of `do:` say; it is no mock of the
supervisor's, but a program with a process of its own.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness_lib.attempts import worker_worktrees
from harness_lib.core.context import Context
from harness_lib.system.git.repository import Git
from harness_lib.system.processes import process
from tests import forked
from tests.conftest import CHECKOUT
from tests.run_to_end import Said, run_to_end
from tests.runs import forking
from tests.system.git.gitrepo import Checkout, commit_all, put, sh
from tests.verbs.project import Agent, Time
from tests.waiting import until

AGENT = Path(__file__).with_name("agent.py")
COMMAND = f"{shlex.quote(sys.executable)} -I -S {shlex.quote(str(AGENT))}"
HARNESS = "tests.runs.forking"
# In the environment of a run: what waits there waits for a tenth of its time.
HURRIED = {forking.HASTE: "10"}
# In the agent's shell: up to the worker that has started it, which is killed.
KILL_WORKER = (
    f"p=$PPID; until grep -q {forking.WORKER} /proc/$p/comm; "
    'do p=$(ps -o ppid= -p $p | tr -d " "); done; kill -9 $p'
)


def descendants(pid: int) -> list[int]:
    """Return the processes below `pid`."""
    children = list(process.children(pid))
    return [*children, *(below for child in children for below in descendants(child))]


def signal_all(pids: Iterable[int], number: int) -> None:
    """Send a signal to `pids`; what git does for a moment may be over."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _without_final_check(argv: Sequence[str]) -> list[str]:
    return [*argv, *(["--no-final-check"] if "--final-check" not in argv else [])]


@dataclass
class Workshop(Checkout):
    """The repository at `top`, the list in it, and the runs that were started on it."""

    top: Path
    home: Path
    runs: list[subprocess.Popen[str]] = field(default_factory=list)

    @classmethod
    def make(
        cls, place: Path, *, mode: str = "exclusive", files: Mapping[str, str] | None = None
    ) -> Workshop:
        top = place / "project"
        top.mkdir(parents=True)
        sh(top, "init", "-q", "-b", "main")
        for name, text in (files or {"README.md": "hello\n", ".gitignore": "*.pyc\n"}).items():
            put(top / name, text)
        commit_all(top, "Begin")
        made = cls(top, place / "home")
        made.ok("init", "--mode", mode)
        return made

    @property
    def env(self) -> dict[str, str]:
        # What a killed worker leaves in its temporary directory goes with the test.
        temporary = self.home / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        own = {"HARNESS_HOME": str(self.home), "PYTHONPATH": str(CHECKOUT), "TMPDIR": str(temporary)}
        return {**os.environ, **own}

    def harness(self, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Type `harness ARGV` in a process of its own."""
        return forked.run(HARNESS, argv, self.top, {**self.env, **env})

    def interpreted(self, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Type `harness ARGV` in an interpreter of its own, as the user does; it takes half a second more."""
        return run_to_end([sys.executable, "-m", "harness_lib", *argv], cwd=self.top, env={**self.env, **env})

    def __call__(self, *argv: str, **env: str) -> Said:
        """Type one command as the user would; in this process, which is quicker."""
        person = Agent("person", self.top, Time(), {"HARNESS_HOME": str(self.home)})
        try:
            return person(*argv, **env)
        finally:
            person.die()

    def ok(self, *argv: str, **env: str) -> dict[str, Any]:
        """Type it with --json, expect exit 0 and return the reply."""
        said = self(*argv, "--json", **env)
        assert said.code == 0, said.text
        return said.json

    def trusts(self) -> None:
        """Trust the commands that the list has now."""
        self.ok("trust", "--yes", HARNESS_TRUST="1")

    def context(self, worker: str = "run-1") -> Context:
        """Return what a run, or a worker of that name, sees of the project."""
        return Context(env={**self.env, "HARNESS_WORKER_ID": worker}, cwd=self.top, target="refs/heads/main")

    def work_tree(self, number: int = 1) -> Path:
        """Return where worker `number` of the run run-1 works."""
        return worker_worktrees.directory_of(self.context(), "run-1").worktree(number)

    def cleaned(self, number: int = 1) -> worker_worktrees.Clean:
        """Make that work tree, or make it clean, at the commit of HEAD."""
        ctx = self.context()
        return worker_worktrees.checkout_clean(ctx, self.work_tree(number), str(ctx.git.head()))

    def add(self, title: str, check: str, *more: str, do: str = "") -> str:
        """Add a task whose agent does the lines `do`; return its id."""
        described = ("--description", "do: " + do.replace("\n", " ;; ")) if do else ()
        return str(self.ok("add", title, "--validate", check, *described, *more)["task"]["id"])

    def file_task(self, name: str, *more: str) -> str:
        """Add a task that is done when the file `name` says so."""
        return self.add(f"Make {name}", f"grep -q done {name}", *more, do=f"write {name} done")

    def fill(self, tasks: list[dict[str, Any]]) -> None:
        """Add many tasks at once."""
        put(self.home / "plan.json", json.dumps({"tasks": tasks}))
        self.ok("import", str(self.home / "plan.json"))

    def run(self, *argv: str, agent: str = COMMAND, **env: str) -> subprocess.CompletedProcess[str]:
        """Let a run go on to its end; without the final check, a fifth of it, unless `argv` has it."""
        return self.harness("run", "--agent-command", agent, *_without_final_check(argv), **env)

    def ends(
        self, code: int, *argv: str, agent: str = COMMAND, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Let a run go on to its end, and expect that exit code."""
        said = self.run(*argv, agent=agent, **env)
        assert said.returncode == code, said.stdout + said.stderr
        return said

    def start(
        self, *argv: str, agent: str | None = COMMAND, until: Path | str = "", **env: str
    ) -> subprocess.Popen[str]:
        """Start a run and return it, once an agent has made the file `until`.

        What it prints goes to `run.log` beside the project. Without `agent` it finds one by itself.
        """
        argv = ("run", *(("--agent-command", agent) if agent else ()), *_without_final_check(argv))
        with (self.top.parent / "run.log").open("a") as log:
            self.runs.append(forked.start(HARNESS, argv, self.top, {**self.env, **env}, log, log))
        if until:
            self.wait_for("an agent has begun", Path(until).exists)
        return self.runs[-1]

    def at_work(self, *argv: str, name: str = "f", **env: str) -> Path:
        """Start a run whose agent has made half of the file `name` and waits, once, for the returned file."""
        started, go = self.home / "started", self.home / "go"
        do = f"write {name} half\ntouch {started}\nonce wait {go}\nwrite {name} done"
        self.add("Slow", f"grep -q done {name}", do=do)
        self.start(*argv, until=started, **env)
        return go

    def worker(self, number: int) -> int:
        """Return the process id of a worker of the last run."""
        (note,) = self.home.glob(f"worktrees/*/*/worker-{number}.running")
        return int(note.read_text().split()[0])

    def has_ended(self, code: int) -> None:
        """Wait for the end of the last run, and expect that exit code."""
        assert self.runs[-1].wait() == code, self.printed

    def cut_power(self) -> None:
        """Let the last run die with all that it has started."""
        self._kill(self.runs[-1])

    def _kill(self, run: subprocess.Popen[str]) -> None:
        signal_all((run.pid, *descendants(run.pid)), signal.SIGKILL)
        run.wait()

    @property
    def printed(self) -> str:
        log = self.top.parent / "run.log"
        return log.read_text() if log.exists() else ""

    @property
    def state(self) -> dict[str, Any]:
        document = json.loads((self.top / "harness-tasks.json").read_text())
        assert isinstance(document, dict)
        return document

    def task(self, name: str) -> dict[str, Any]:
        return next(task for task in self.state["tasks"] if task["id"] == name)

    def statuses(self) -> dict[str, str]:
        return {task["id"]: task["status"] for task in self.state["tasks"]}

    @property
    def git(self) -> Git:
        return Git.open(self.top)

    def wait_for(self, event: str, seen: Any) -> None:
        """Return once `seen()` is true; fail with what the runs have printed after a long while."""
        until(event, seen, lambda: self.printed)

    def close(self) -> None:
        for run in self.runs:
            if run.poll() is None:
                self._kill(run)

    # -- what must be true at the end ---------------------------------------------------------------------

    def all_is_well(self) -> None:
        """Find done what is done, and nothing else left of the run."""
        self.done_is_done()
        self.nothing_is_left_over()

    def nothing_is_left_over(self) -> None:
        """No work tree, no process, no branch of a run's; the user's checkout is as git has it."""
        assert len(self.sh("worktree", "list").splitlines()) == 1
        assert list((self.home / "worktrees").glob("*")) == []
        assert self.sh("for-each-ref", "--format=%(refname)", "refs/heads").splitlines() == [
            "refs/heads/main"
        ]
        assert self.sh("status", "--porcelain", "--untracked-files=all") == ""
        assert self.state["sessions"] == []
        # A command of --notify may outlive its run.
        self.wait_for("notify", lambda: not any("import guard;" in line for line in self._processes()))
        left = self._processes()
        assert not left, left

    def _processes(self) -> list[str]:
        """Return what still runs in, or talks about, this project's places."""
        left = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                cwd = str((entry / "cwd").readlink())
            except OSError:
                continue
            mine = int(entry.name) == os.getpid()
            here = str(self.top.parent) in cwd or str(self.top.parent) in line
            if here and not mine and process.alive(int(entry.name)):
                left.append(f"{entry.name} {line} in {cwd}")
        return left

    def done_is_done(self) -> None:
        """Every completed task's commit is on the branch, once, and its check passes there."""
        log = self.sh("log", "--format=%H %s", "main")
        for task in self.state["tasks"]:
            if task["status"] != "completed":
                continue
            if "completed_commit" in task:
                assert self.git.is_ancestor(task["completed_commit"], "refs/heads/main"), task["id"]
            assert log.count(f" [{task['id']}] ") <= 1, log
            done = subprocess.run(
                ["sh", "-c", task["validation"]["command"]], cwd=self.top, check=False, capture_output=True
            )
            assert done.returncode == 0, (task["id"], done.stdout, done.stderr)

    def failures_are_kept(self) -> None:
        """Find the work of every failed attempt in a rescue ref."""
        refs = self.sh("for-each-ref", "--format=%(refname)", "refs/harness/rescue").splitlines()
        for task in self.state["tasks"]:
            worked = [blame for blame in task["error_log"] if "No progress detected" not in blame]
            kept = [ref for ref in refs if ref.startswith(f"refs/harness/rescue/{task['id']}/")]
            assert len(kept) >= len(worked), (task, refs)
