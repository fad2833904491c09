"""`harness demo`: show the whole protocol in a temporary project, with a scripted agent, offline.

Everything in it is real: git, the unattended run with two workers, processes, the SIGKILL, the conflict.
Only the agent is a script (`agent`). What it does is written beside each task: it kills the run that started
it, lets a task fail, writes into the same lines as another agent, writes a wrong answer first, and meets a
task that it cannot do.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from harness_lib import typed
from harness_lib.attempts import rescue_refs
from harness_lib.attempts.rescue_refs import RESCUE_REFS
from harness_lib.core.context import Context, Reply, Say
from harness_lib.errors import Exit
from harness_lib.rules import selection
from harness_lib.state.api import Questions
from harness_lib.system.git import calls, worktrees
from harness_lib.system.git.repository import Git
from harness_lib.system.install import launcher
from harness_lib.system.processes import child, own_process, owner, process
from harness_lib.task import Priority, Task, Validation
from harness_lib.terminal import render
from harness_lib.verbs import add, init, status

SUMMARY = "see the whole protocol at work in a temporary project, with a scripted agent"
EXAMPLE = "harness demo"
HELP_ORDER = 540

MOST_RUNS = 3
WORKERS = 2
KILLED = -9
CODE = Path("calc.py")
MARKS = ("<<<<<<<", "=======", ">>>>>>>")
# Seconds that the two conflicting agents wait for each other.
PATIENCE_SECONDS = 20.0
TOGETHER = ("task-002", "task-003")


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--machines",
        type=int,
        choices=(1, 3),
        default=1,
        help="3: as many machines share a list in a PostgreSQL that the demo starts (default 1)",
    )


def answer(ctx: Context, args: Namespace) -> Reply:
    screen: render.Screen = args.screen
    show = screen.talk if screen.json else screen.data
    if args.machines > 1:
        return _of_machines(ctx, show)
    reply = run(ctx, show)
    if not screen.json:
        demo_ctx = Context(env={**ctx.env, "HARNESS_STATE_ROOT": str(reply.extra["root"])}, cwd=ctx.cwd)
        screen.data("")
        render.reply(status.run(demo_ctx, everything=True), screen)
    return reply


def _of_machines(ctx: Context, show: Say) -> Reply:
    # One machine needs none of it.
    from harness_lib.runs import demo_machines  # noqa: PLC0415

    place, broken = demo_machines.run(ctx, show)
    lines = ["", *(f"NOT as promised: {promise}" for promise in broken)]
    return Reply(
        "\n".join([*lines, f"what each machine has, and what its run has printed (run.log): {place}"]),
        exit=Exit.CHECK_FAILED if broken else Exit.DONE,
        next="harness store init URL",
        extra={"root": str(place), "broken": broken},
    )


# -- what the agent does


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _add(_brief: str) -> None:
    CODE.write_text("def add(a, b):\n    return a + b\n", encoding="utf-8")
    _say("calc.py is written; now everything is killed")
    # As a crash of the machine would: the run and the worker that this agent works for.
    run = Context(env=os.environ, cwd=Path.cwd()).store.ask().sessions()[0].pid
    assert run is not None
    worker = next(each.pid for each in process.ancestors() if each.parent == run)
    # Otherwise it could see the end of its run first, and stop this agent.
    own_process.send(worker, own_process.PAUSE)
    own_process.send(run, own_process.KILL)
    own_process.send(worker, own_process.KILL)


def _append(text: str) -> Callable[[str], None]:
    def work(_brief: str) -> None:
        lines = CODE.read_text(encoding="utf-8").splitlines(keepends=True)
        if any(line.startswith(MARKS) for line in lines):
            _say("both sides of the conflict stay")
            CODE.write_text("".join(line for line in lines if not line.startswith(MARKS)), encoding="utf-8")
            return
        # Until the other agent has begun, too: both then work on the same content.
        place = Path(os.environ["HARNESS_DEMO"])
        (place / os.environ["HARNESS_TASK_ID"]).touch()
        end = time.monotonic() + PATIENCE_SECONDS
        while not all((place / name).exists() for name in TOGETHER) and time.monotonic() < end:
            time.sleep(0.02)
        CODE.write_text("".join(lines) + text, encoding="utf-8")

    return work


def _charge(_brief: str) -> None:
    _say("there is no card reader on this machine")


def _document(brief: str) -> None:
    names = "`add`" if "last failure:" not in brief else "`add`, `mul` and `sub`"
    Path("README.md").write_text(f"{names} of two numbers.\n", encoding="utf-8")


class _Step(NamedTuple):
    """A task, by its title, and what the agent does about it."""

    title: str
    check: str
    work: Callable[[str], None]
    priority: Priority = "P1"
    after: tuple[str, ...] = ()
    max_attempts: int = 3

    def task(self) -> Task:
        """Return the task as it is added."""
        return Task(
            "",
            self.title,
            priority=self.priority,
            depends_on=self.after,
            max_attempts=self.max_attempts,
            validation=Validation(self.check),
        )


def _python(code: str) -> str:
    return f'python3 -B -c "{code}"'


# By the ids that the tasks get.
STEPS = {
    "task-001": _Step(
        "Add two numbers", _python("from calc import add; assert add(2, 3) == 5"), _add, priority="P0"
    ),
    "task-002": _Step(
        "Multiply two numbers",
        _python("from calc import mul; assert mul(2, 3) == 6"),
        _append("\n\ndef mul(a, b):\n    return a * b\n"),
        after=("task-001",),
    ),
    "task-003": _Step(
        "Subtract two numbers",
        _python("from calc import sub; assert sub(3, 2) == 1"),
        _append("\n\ndef sub(a, b):\n    return a - b\n"),
        after=("task-001",),
    ),
    "task-004": _Step("Charge the card", _python("import payments"), _charge, max_attempts=1),
    "task-005": _Step("Send receipts", _python("import receipts"), _charge, after=("task-004",)),
    "task-006": _Step("Document it", "grep -q mul README.md", _document, priority="P2", after=TOGETHER),
}


def agent() -> None:
    """Do the task of the brief on standard input."""
    STEPS[os.environ["HARNESS_TASK_ID"]].work(sys.stdin.read())


# -- the demo


def run(ctx: Context, show: Say) -> Reply:
    """Run the demo and pass each step to `show`; exit 1 unless everything that it promises happened."""
    calls.require_for_runs(ctx.cwd)
    project = Path(tempfile.mkdtemp(prefix="harness-demo-")).resolve()
    env = owner.without_agent(ctx.env)
    env |= {"HARNESS_STATE_ROOT": str(project), "HARNESS_DEMO": str(project / ".harness")}
    demo_ctx = Context(env=env, cwd=project, clock=ctx.clock, say=ctx.say)
    show(f"a project in {project}, six tasks with dependencies and a check each:")
    Git.init(project)
    init.run(demo_ctx, project)
    for step in STEPS.values():
        task = add.run(demo_ctx, step.task()).task
        assert task is not None
        after = f"  (after {', '.join(task.depends_on)})" if task.depends_on else ""
        show(f"  {task.id} {task.title}{after}")
    killed = _work(demo_ctx, project, show)
    questions = demo_ctx.ask()
    broken = [promise for promise, kept in _promises(demo_ctx, questions, killed=killed) if not kept]
    return _reply(demo_ctx, project, broken)


def _work(ctx: Context, project: Path, show: Say) -> bool:
    """Run until a run ends by itself; return whether one was killed before."""
    killed = False
    for _ in range(MOST_RUNS):
        show("")
        again = "            # again, where the last one was killed" if killed else ""
        show(f"$ {typed.harness('run', '-j', WORKERS)}{again}")
        if _run(ctx, project, show) != KILLED:
            return killed
        killed = True
        show("the run was killed with SIGKILL, and a worker with it, in the middle of task-001")
    return killed


def _run(ctx: Context, project: Path, show: Say) -> int:
    works = shlex.join(launcher.python("from harness_lib.verbs.demo import agent; agent()"))
    # Its agents keep count beside the work trees, and one kills the run.
    command = [*launcher.harness(), "run", "-j", str(WORKERS), "--sandbox", "off", "--agent-command", works]
    return child.follow(command, lambda line: show(f"  {line.rstrip()}"), env=ctx.env, cwd=project)


def _promises(ctx: Context, questions: Questions, *, killed: bool) -> list[tuple[str, bool]]:
    git = ctx.git
    lines = ctx.store.log_tail(200)
    task = {each.id: each for each in questions.search()}
    rescued = [name for name, _oid in git.refs(RESCUE_REFS)]
    done = [task[f"task-00{n}"] for n in (1, 2, 3, 6)]
    together = [f"{RESCUE_REFS}{name}/1" for name in TOGETHER]
    return [
        ("a run was killed with SIGKILL", killed),
        ("task-001 was recovered", any(" RECOVERY [task-001] " in line for line in lines)),
        ("task-002 and task-003 got into each other's way", any(ref in rescued for ref in together)),
        ("that cost neither of them an attempt", not any(task[name].attempts for name in TOGETHER)),
        ("task-006 failed its check once and was retried", task["task-006"].attempts == 1),
        ("its first attempt is kept", f"{RESCUE_REFS}task-006/1" in rescued),
        ("it was rolled back", any(" ROLLBACK [task-006] " in line for line in lines)),
        ("task-004 failed for good", selection.is_permanent(task["task-004"])),
        ("task-005 is blocked by it", "[DEPENDENCY]" in " ".join(task["task-005"].error_log)),
        ("the other four are completed", all(each.status == "completed" for each in done)),
        (
            "their commits are on the branch",
            all(each.completed_commit and git.is_ancestor(each.completed_commit, "HEAD") for each in done),
        ),
        ("the work tree is clean", not ctx.changes().tracked),
        ("no work tree of a worker is left", len(worktrees.listed(git)) == 1),
    ]


def _reply(ctx: Context, project: Path, broken: list[str]) -> Reply:
    rescued = [name for name, _oid in ctx.git.refs(RESCUE_REFS)]
    change_directory = typed.change_to(project)
    lines = [
        "",
        f"the log:            {ctx.store.log_file}",
        f"the commits:        {typed.git('-C', project, 'log', '--oneline')}",
        *(f"work that was kept: {change_directory} && {rescue_refs.show_command(name)}" for name in rescued),
    ]
    missing = render.advice(ctx.env.get("PATH", ""))
    lines += [missing] if missing else []
    lines += [f"NOT as promised: {promise}" for promise in broken]
    return Reply(
        "\n".join(lines),
        exit=Exit.CHECK_FAILED if broken else Exit.DONE,
        next="harness init",
        extra={"root": str(project), "broken": broken, "rescue": rescued},
    )
