"""What is wrong with the file of the list, said as exactly as possible. Never writes and takes no lock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from harness_lib.errors import StateUnreadableError
from harness_lib.rules import graph
from harness_lib.rules.selection import UNPROVEN
from harness_lib.state import codec, proofs, schema, summary
from harness_lib.state.api import Examined
from harness_lib.state.codec import ContractError, UnparseableError
from harness_lib.state.filestore import load
from harness_lib.state.filestore.answers import Answers
from harness_lib.state.record.kinds import Problem
from harness_lib.system.place.roots import Root
from harness_lib.task import State


def examine(root: Root, now: datetime) -> Examined:
    """Read the file strictly: by the codec, which says it best, by the schema, and for cycles."""
    name = root.state.name
    try:
        document = codec.parse(root.state.read_bytes())
    except FileNotFoundError:
        return Examined((Problem("", f"{name} is missing; {_rest(root)}"),), is_lost=True)
    except UnparseableError as error:
        return Examined((Problem("", f"{name} is not JSON ({error}); {_rest(root)}"),), is_lost=True)
    except ContractError as error:
        return Examined(error.problems)
    if codec.is_emptied(document):
        return Examined((Problem("", f"{name} has no tasks in it; {_rest(root)}"),), is_lost=True)
    try:
        state = proofs.examined(codec.decode(document, name))
    except ContractError as error:
        return Examined(_sorted([*error.problems, *_more(document, error)]))
    rings = [Problem("tasks", f"cycle: {graph.describe(ring)}") for ring in graph.cycles(state.tasks)]
    unproven = tuple(_unproven(state))
    problems = (*_by_schema(root, document), *rings, *unproven)
    return Examined(problems, Answers(state, now), is_only_unproven=len(problems) == len(unproven))


def _by_schema(root: Root, document: object) -> list[Problem]:
    """Return what the schema says; nothing where the list lies as harness has left it, who had it checked."""
    untouched = summary.read_for(root, root.state.stat()) is not None
    return [] if untouched else schema.problems(document)


def _unproven(state: State) -> Iterator[Problem]:
    for index, task in enumerate(state.tasks):
        if task.unproven:
            yield Problem(f"tasks[{index}].status", f"{task.id}: {UNPROVEN}; harness start has its check run")


def _more(document: object, error: ContractError) -> list[Problem]:
    """Return what only the schema sees, or sees somewhere else."""
    named = {problem.path for problem in error.problems}
    return [problem for problem in schema.problems(document) if problem.path not in named]


def _sorted(problems: list[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda problem: problem.path.count(".") + problem.path.count("[")))


def _rest(root: Root) -> str:
    """Say what a repair would put in its place."""
    try:
        loaded = load.find(root)
    except StateUnreadableError:
        return "no good earlier state is left"
    return f"the newest good state is {loaded.source} with {len(loaded.state.tasks)} tasks"
