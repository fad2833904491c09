"""What must be true of a world of machines after a storm."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import psycopg

from harness_lib.attempts import remote
from harness_lib.system.git.repository import Git
from tests.machines.weather import SmallWorld

HERE = "refs/heads/here"
# Seconds that a push may take beside all else.
SLACK = 30.0


def problems(world: SmallWorld, spans: Sequence[tuple[str, float, float]]) -> list[str]:
    """Return what is wrong; `spans`: when the weather was bad, and for whom."""
    git = Git.open(world.place / "seed")
    git.run("fetch", "--quiet", str(world.remote), f"+main:{HERE}")
    said = world.machines[0]("store", "check")
    return [
        *_of_the_list(world, git),
        *_unchecked(world, git),
        *_held_twice(world),
        *_lost(world, spans),
        *(f"{kind}: {refs}" for kind in ("wip", "ready") if (refs := world.refs(kind))),
        *([said.text] if said.code else []),
    ]


def _of_the_list(world: SmallWorld, git: Git) -> Iterator[str]:
    """Each task is completed, and once on the branch; the weather has failed none.

    An agent whose disk was full fails, and so does work that conflicts with that of others again and again.
    """
    counts = Counter(each.task for each in remote.landed(git, world.name, HERE))
    for task in world.tasks():
        if task.status != "completed" or counts[task.id] != 1:
            yield f"{task.id} is {task.status} and {counts[task.id]} times on the branch: {task.halt}"
        if task.completed_commit and not git.is_ancestor(task.completed_commit, HERE):
            yield f"{task.id}: {task.completed_commit} is not on the branch"
        if failed := [each for each in task.error_log if not _is_its_own(world, each)]:
            yield f"the weather has cost {task.id} an attempt: {failed}"


def _is_its_own(world: SmallWorld, error: str) -> bool:
    """Return whether an attempt may fail with `error`, also one that the weather has interrupted.

    The third interruption in a row without any progress is a failed attempt (docs/design.md).
    """
    if "interrupted 3 times in a row without progress" in error:
        return True
    if "but conflicts with what was merged meanwhile" in error or "Conflict marks still stand" in error:
        return True
    return "disk full" in world.story and "TEST_FAIL" in error


def _unchecked(world: SmallWorld, git: Git) -> Iterator[str]:
    """Each content that the branch ever had was passed by the check of each task that came with it."""
    passed = defaultdict(set)
    for line in (world.place / "checked").read_text().splitlines():
        tree, word = line.split()
        passed[word].add(tree)
    words = {task.id: (task.validation.command or "").split()[-1] for task in world.tasks()}
    for line in (world.remote / "logs" / "refs" / "heads" / "main").read_text().splitlines():
        old, new = line.split()[:2]
        if not git.is_ancestor(old, new):
            yield f"the branch went back from {old} to {new}"
        for each in remote.landed(git, world.name, new, f"^{old}"):
            if git.tree_of(new) not in passed[words[each.task]]:
                yield f"{new}, with {each.task}, was not checked as it is on the branch"


def _held_twice(world: SmallWorld) -> Iterator[str]:
    """No claim is held by two workers, but for the one of its run that merges: it is handed over to that."""
    query = """
        select task, fence, array_agg(worker) from public.held as one
        where worker not like '%#0' or not exists (
            select from public.held as other where other.worker <> one.worker
            and (other.task, other.fence) = (one.task, one.fence)
            and split_part(other.worker, '#', 1) = split_part(one.worker, '#', 1))
        group by 1, 2 having count(*) > 1"""
    with psycopg.connect(world.own_url) as conn:
        for row in conn.execute(query):
            yield f"held by two: {row}"


class Wrote(NamedTuple):
    """An agent, how many lines it found, and when it wrote which."""

    machine: str
    found: int
    lines: list[tuple[int, float]]


def _lost(world: SmallWorld, spans: Sequence[tuple[str, float, float]]) -> Iterator[str]:
    """Who goes on with a task finds what was older than half a lease, if it could be pushed."""
    tasks: dict[str, dict[str, Wrote]] = defaultdict(dict)
    for line in (world.place / "lines").read_text().splitlines():
        task, agent, verb, number, at = line.split()
        if verb == "found":
            tasks[task][agent] = Wrote(agent.partition("/")[0], int(number), [])
        else:
            tasks[task][agent].lines.append((int(number), float(at)))
    age = world.lease / 3 + SLACK
    for task, agents in tasks.items():
        in_order = list(agents.values())
        for before, after in pairwise(in_order):
            end = before.lines[-1][1] if before.lines else 0.0
            due = max((number for number, at in before.lines if at < end - age), default=0)
            is_excused = any(
                who in (before.machine, "git", "database") and since < end + 1 and until > end - 2 * age
                for who, since, until in spans
                if not (who == before.machine and since >= end - 1)
            )
            if after.found < due and not is_excused:
                yield f"{task}: {before.machine} wrote {due} lines long before, and {after.found} were there"
