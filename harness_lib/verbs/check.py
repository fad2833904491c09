"""`harness check`: what is wrong with the list, and what it would run.

Never writes and takes no lock; `--repair` is `harness_lib.core.repair_list`.
Source: docs/design.md, "Reading is strict" and "Trust".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harness_lib import typed
from harness_lib.core import lint_tasks, trust_policy
from harness_lib.core.context import Context
from harness_lib.core.reply import Reply
from harness_lib.errors import EnvSetupError, Exit, StateUnreadableError
from harness_lib.rules import graph
from harness_lib.rules.selection import UNPROVEN
from harness_lib.state import codec, finding, proofs, schema, summary
from harness_lib.state.codec import ContractError, UnparseableError
from harness_lib.state.shapes import Problem
from harness_lib.system.files import append_log
from harness_lib.task import State

SHOWN = 15
COMMANDS_SHOWN = 20
LENGTH = 300


class Examined(NamedTuple):
    """What is wrong with the file, the nearest to its top first; the list, if it can be read at all.

    `is_lost`: it is missing, no JSON or without tasks, the cases that a repair can mend.
    """

    problems: tuple[Problem, ...]
    state: State | None = None
    is_lost: bool = False


def run(ctx: Context, *, everything: bool = False) -> Reply:
    """Return all problems (exit 1 if there is one), what deserves a second look, and the list's commands.

    Long lists and long commands are cut and say so; `everything` shows all of them whole.
    """
    found = examine(ctx)
    state = found.state
    doubts = list(lint_tasks.doubts(ctx, state)) if state else []
    commands = list(_commands(state)) if state else []
    trusted = state is not None and _is_trusted(ctx, state)
    limit = None if everything else SHOWN
    lines = [
        *_bounded([str(problem) for problem in found.problems], limit),
        *_bounded([f"warning: {doubt}" for doubt in doubts], limit),
        *_listed(ctx, commands, None if everything else COMMANDS_SHOWN),
        _verdict(ctx, found, trusted=trusted),
    ]
    return Reply(
        "check",
        "\n".join(lines),
        exit=Exit.CHECK_FAILED if found.problems else Exit.DONE,
        next=_next(found, trusted=trusted),
        extra={
            "problems": [problem._asdict() for problem in found.problems[:limit]],
            "doubts": doubts[:limit],
            "commands": len(commands),
            "trusted": trusted,
        },
    )


def examine(ctx: Context) -> Examined:
    """Read the file strictly: by the codec, which says it best, by the schema, and for cycles."""
    name = ctx.root.state.name
    try:
        document = codec.parse(ctx.root.state.read_bytes())
    except FileNotFoundError:
        return Examined((Problem("", f"{name} is missing; {_rest(ctx)}"),), is_lost=True)
    except UnparseableError as error:
        return Examined((Problem("", f"{name} is not JSON ({error}); {_rest(ctx)}"),), is_lost=True)
    except ContractError as error:
        return Examined(error.problems)
    if codec.is_emptied(document):
        return Examined((Problem("", f"{name} has no tasks in it; {_rest(ctx)}"),), is_lost=True)
    try:
        state = proofs.examined(codec.decode(document, name))
    except ContractError as error:
        return Examined(_sorted([*error.problems, *_more(document, error)]))
    rings = [Problem("tasks", f"cycle: {graph.describe(ring)}") for ring in graph.cycles(state.tasks)]
    return Examined((*_by_schema(ctx, document), *rings, *_unproven(state)), state)


def _by_schema(ctx: Context, document: object) -> list[Problem]:
    """Return what the schema says; nothing where the list lies as harness has left it, who had it checked."""
    untouched = summary.read_for(ctx.root, ctx.root.state.stat()) is not None
    return [] if untouched else schema.problems(document)


def _unproven(state: State) -> Iterator[Problem]:
    for index, task in enumerate(state.tasks):
        if task.unproven:
            yield Problem(f"tasks[{index}].status", f"{task.id}: {UNPROVEN}; harness start has its check run")


def _more(document: object, told: ContractError) -> list[Problem]:
    """Return what only the schema sees, or sees somewhere else."""
    named = {problem.path for problem in told.problems}
    return [problem for problem in schema.problems(document) if problem.path not in named]


def _sorted(problems: list[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda problem: problem.path.count(".") + problem.path.count("[")))


def _rest(ctx: Context) -> str:
    """Say what a repair would put in its place."""
    try:
        found = finding.find(ctx.root)
    except StateUnreadableError:
        return "no good earlier state is left"
    return f"the newest good state is {found.source} with {len(found.state.tasks)} tasks"


def _commands(state: State) -> Iterator[tuple[str, str]]:
    """Yield (where it stands, what a shell would be given)."""
    for task in state.tasks:
        if task.validation.command:
            yield f"{task.id} check", task.validation.command
        if task.on_failure.cleanup:
            yield f"{task.id} cleanup", task.on_failure.cleanup


def _listed(ctx: Context, commands: list[tuple[str, str]], limit: int | None) -> Iterator[str]:
    if ctx.root.init_script.is_file():
        yield f"runs when a session starts: {ctx.root.init_script}"
    if commands:
        yield f"commands of this list ({len(commands)}):"
    for where, text in commands[:limit]:
        # Escaped, not smoothed: this is what a person reads before trusting it.
        shown = append_log.escape(text)
        if limit is not None and len(shown) > LENGTH:
            shown = f"{shown[:LENGTH]}… ({len(shown) - LENGTH} characters more: harness check --all)"
        yield f"  {where}: {shown}"
    if limit is not None and len(commands) > limit:
        yield f"  … and {len(commands) - limit} more (harness check --all)"


def _bounded(lines: list[str], limit: int | None) -> list[str]:
    if limit is None or len(lines) <= limit:
        return lines
    return [*lines[:limit], f"… and {len(lines) - limit} more of these (harness check --all)"]


def _verdict(ctx: Context, found: Examined, *, trusted: bool) -> str:
    if found.problems or found.state is None:
        number = len(found.problems)
        return f"{number} problem{'s' if number > 1 else ''} in {ctx.root.state}"
    doubt = "" if trusted else "; its commands have not been trusted on this machine"
    return f"{ctx.root.state} keeps the contract ({len(found.state.tasks)} tasks){doubt}"


def _next(found: Examined, *, trusted: bool) -> str | None:
    if found.is_lost:
        return "harness check --repair"
    rings = graph.cycles(found.state.tasks) if found.state else ()
    if rings:
        return typed.harness("why", rings[0][0])
    if found.problems:
        unproven = found.state is not None and len(found.problems) == len(list(_unproven(found.state)))
        return "harness start" if unproven and trusted else "harness check"
    return "harness status" if trusted else "harness trust"


def _is_trusted(ctx: Context, state: State) -> bool:
    """Say whether the commands may run; where there is no repository, none may."""
    try:
        return trust_policy.is_trusted(ctx, state)
    except EnvSetupError:
        return False
