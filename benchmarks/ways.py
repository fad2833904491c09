"""Ways to let an agent work through the tasks of a case: two loops as people write them, and harness."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.cases import BASE, Case, Task

CHECKOUT = Path(__file__).resolve().parents[1]
ATTEMPTS = 3
# Not `-m`: an agent may leave a module in the project that is called like one of Python's.
_HARNESS = (
    sys.executable,
    "-I",
    "-c",
    f"import sys; sys.path.insert(0, {str(CHECKOUT)!r}); from harness_lib.cli.main import entry; entry()",
)
# Enough of npm for a check, and quick: it runs a script of package.json.
_NPM = """#!/bin/sh
exec sh -c "$(python -I -c 'import json; print(json.load(open("package.json"))["scripts"]["test"])')"
"""


class Project:
    """A repository with what a case needs; beside it are a home, the agent, and how often a check ran."""

    def __init__(self, place: Path, case: Case) -> None:
        """Make all that in `place`."""
        self.case, self.top, self.home = case, place / "project", place / "home"
        self._count, self._work = place / "checks", place / "work"
        programs = self.home / ".local" / "bin"
        programs.mkdir(parents=True)
        self._work.mkdir()
        for name, text in (("npm", _NPM), ("count-check", f"#!/bin/sh\necho >> {self._count}\n")):
            (programs / name).write_text(text, encoding="utf-8")
            (programs / name).chmod(0o755)
        for name, text in {**BASE, **case.files}.items():
            (self.top / name).parent.mkdir(parents=True, exist_ok=True)
            (self.top / name).write_text(text, encoding="utf-8")
        for number, task in enumerate(case.tasks, 1):
            (self._work / f"task-{number:03}").write_text(task.work, encoding="utf-8")
        self.git("init", "--quiet", "--initial-branch=main", "--template=")
        for key, value in (("user.name", "Bench"), ("user.email", "bench@example.invalid")):
            self.git("config", key, value)
        self.commit()

    @property
    def env(self) -> dict[str, str]:
        """Return an environment with a home of its own and none of the caller's agent in it."""
        kept = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
        folders = (self.home / ".local" / "bin", Path(sys.executable).parent, os.environ["PATH"])
        return {
            **kept,
            "PATH": os.pathsep.join(map(str, folders)),
            "HOME": str(self.home),
            "HARNESS_HOME": str(self.home / "data"),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "GIT_CONFIG_SYSTEM": os.devnull,
            "LIST": str(self.top / "harness-tasks.json"),
            # Checks count their runs outside of their work tree.
            "HARNESS_SANDBOX": "off",
        }

    @property
    def checks(self) -> int:
        """Return how often a check has run."""
        return len(self._count.read_text(encoding="utf-8")) if self._count.exists() else 0

    def check(self, task: Task) -> str:
        """Return the check of `task`, which leaves a line where its runs are counted."""
        return f"count-check && {task.check}"

    def shell(self, command: str, cwd: Path | None = None) -> int:
        """Run a command of the shell and return its exit code."""
        done = subprocess.run(
            ["sh", "-c", command], cwd=cwd or self.top, env=self.env, check=False, capture_output=True
        )
        return done.returncode

    def git(self, *argv: str) -> str:
        """Run git and return what it prints."""
        done = subprocess.run(
            ["git", *argv], cwd=self.top, env=self.env, check=True, capture_output=True, text=True
        )
        return done.stdout

    def commit(self) -> None:
        """Commit everything, as a loop does."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=Done")

    def type(self, argv: Sequence[str], env: Mapping[str, str]) -> str:
        """Type `harness ARGV` and return what it prints on standard output."""
        done = subprocess.run(
            [*_HARNESS, *argv],
            cwd=self.top,
            env=env,
            stdin=subprocess.DEVNULL,
            check=False,
            capture_output=True,
            text=True,
        )
        return done.stdout

    def harness(self, *argv: str, worker: str = "person") -> dict[str, object]:
        """Type `harness ARGV --json` as the one who is called `worker`, and return the reply."""
        printed = self.type([*argv, "--json"], {**self.env, "HARNESS_WORKER_ID": worker})
        reply = json.loads(printed.splitlines()[-1])
        assert isinstance(reply, dict)
        return reply

    def agent(self) -> str:
        """Return the command of an agent that does the work of the task it is given; repairs are honest."""
        repairs = (f"grep -qF {task.title!r} && {task.repair}" for task in self.case.tasks)
        script = self._work / "agent.sh"
        script.write_text(
            f'work={self._work}/$HARNESS_TASK_ID\ntest -e "$work" && exec sh "$work"\n'
            "brief=$(cat)\n" + "".join(f'printf "%s" "$brief" | {repair}\n' for repair in repairs),
            encoding="utf-8",
        )
        return f"sh {script}"

    def work(self, number: int) -> None:
        """Do the work of task `number` here."""
        self.shell(f"sh {self._work}/task-{number:03}")

    def write_list(self, *, held_out: bool = False) -> None:
        """Write the list with all tasks, with their held-out checks if asked for."""
        self.harness("init")
        for task in self.case.tasks:
            more = ["--description", task.description] if task.description else []
            more += ["--hidden", task.held_out] if held_out else []
            self.harness("add", task.title, "--validate", self.check(task), *more)

    def tasks(self) -> list[dict[str, object]]:
        """Return the tasks of the list as they stand in it; none where there is no list."""
        path = self.top / "harness-tasks.json"
        found = json.loads(path.read_text(encoding="utf-8"))["tasks"] if path.exists() else []
        assert isinstance(found, list)
        return found[: len(self.case.tasks)]

    def completed(self) -> set[int]:
        """Return which tasks the list says are done: completed, and not red."""
        tasks = enumerate(self.tasks(), 1)
        return {number for number, task in tasks if task["status"] == "completed"} - self.red()

    def red(self) -> set[int]:
        """Return which tasks are completed, and known to be broken now."""
        rechecks = ((number, task.get("recheck")) for number, task in enumerate(self.tasks(), 1))
        return {
            n
            for n, said in rechecks
            if isinstance(said, dict) and not said["passed"] and not said.get("excuse")
        }

    def named(self) -> set[int]:
        """Return which tasks the user is told to look at."""
        return {number for number, task in enumerate(self.tasks(), 1) if task.get("look_at")}

    def right(self) -> set[int]:
        """Return which tasks are done as they should be, by what is committed on the branch."""
        place = self.top.with_name("judged")
        shutil.rmtree(place, ignore_errors=True)
        self.git("clone", "--quiet", "--branch", "main", str(self.top), str(place))
        return {n for n, task in enumerate(self.case.tasks, 1) if not self.shell(task.right, place)}


def agent_says_so(project: Project) -> set[int]:
    """Take every task for done that the agent has worked on."""
    for number in range(1, len(project.case.tasks) + 1):
        project.work(number)
        project.commit()
    return set(range(1, len(project.case.tasks) + 1))


def check_passes(project: Project) -> set[int]:
    """Take every task for done whose check passes."""
    done = set()
    for number, task in enumerate(project.case.tasks, 1):
        for _ in range(ATTEMPTS):
            project.work(number)
            if not project.shell(project.check(task)):
                project.commit()
                done.add(number)
                break
            project.git("checkout", "--quiet", "--force", "HEAD")
    return done


def chat(project: Project) -> set[int]:
    """Work as the agent of a chat does, with the final check at the end."""
    project.write_list()
    project.harness("start", worker="agent")
    while isinstance(task := project.harness("claim", worker="agent").get("task"), dict):
        project.work(int(str(task["id"]).partition("-")[2]))
        project.harness("finish", worker="agent")
    finals = ("validate", "--all", "--committed")
    while str(project.harness(*finals, worker="agent").get("next") or "").endswith("--committed"):
        pass
    return project.completed()


def run(project: Project) -> set[int]:
    """Let `harness run` do it."""
    project.write_list()
    project.harness("run", "--agent-command", project.agent())
    return project.completed()


def run_held_out(project: Project) -> set[int]:
    """Let `harness run` do it, with a check of each task that no agent sees."""
    project.write_list(held_out=True)
    project.harness("run", "--agent-command", project.agent())
    return project.completed()


WAYS: Mapping[str, Callable[[Project], set[int]]] = {
    "a loop that believes the agent": agent_says_so,
    "a loop that believes the check": check_passes,
    "harness in a chat": chat,
    "harness run": run,
    "harness run with held-out checks": run_held_out,
}
