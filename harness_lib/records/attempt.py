"""What is kept of the attempts at a task: parts of its record.

All values are frozen; `extra` holds keys this version does not know, which survive every write.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal, NamedTuple, get_args

from harness_lib.records.fields import (
    AMOUNT,
    FLAG,
    LONG,
    MOMENT,
    NOTE,
    PATH,
    REVISION,
    SHORT_PATH,
    STRING,
    About,
    choice,
    integer,
    listed,
)
from harness_lib.text import Strings

Outcome = Literal["completed", "failed", "pending"]
RolledBack = Literal["failed", "pending"]
GitStep = Literal["commit", "rollback", "merge"]
Category = Literal[
    "ENV_SETUP", "CONFIG", "TASK_EXEC", "TEST_FAIL", "TIMEOUT", "DEPENDENCY", "SESSION_TIMEOUT"
]
CATEGORIES: tuple[Category, ...] = get_args(Category)
Excuse = Literal["not_reproducible", "elsewhere", "held_out"]
# Why work that has passed its check went back to an agent all the same.
SentBack = Literal["judges", "vacuous"]
# How a task was completed, where that is not as usual.
DoneAs = Literal["already_done", "flaky"]
# Where a run brings finished work, other than into the branch of the user.
Merge = Literal["branch", "pull-request"]

Extra = Mapping[str, object]
NO_EXTRA: Extra = MappingProxyType({})


class Checkpoint(NamedTuple):
    """Progress inside an attempt."""

    step: Annotated[int, About(integer(), "Steps done.", required=True)]
    total: Annotated[int, About(integer(), "Steps planned.", required=True)]
    description: Annotated[str, About(LONG, "What was done.", always=True)] = ""
    timestamp: Annotated[str | None, About(MOMENT, "When.", always=True)] = None
    tree: Annotated[str | None, About(REVISION, "The git tree of the content at that moment.")] = None
    extra: Extra = NO_EXTRA


class Gate(NamedTuple):
    """What the attempt may not weaken, taken when it was claimed."""

    command: Annotated[str | None, About(STRING, "Fingerprint of the check.")] = None
    cwd: Annotated[str | None, About(PATH, "Where the check runs.")] = None
    protected: Annotated[str | None, About(REVISION, "Git tree of the protected files.")] = None
    protect: Annotated[Strings, About(listed(STRING), "Globs of files that the run protects.")] = ()
    kept: Annotated[str | None, About(REVISION, "Git tree of the files that the run protects.")] = None
    judges: Annotated[
        str | None, About(REVISION, "Written by earlier versions: a tree of what the check depends on.")
    ] = None
    before: Annotated[str | None, About(REVISION, "The commit that holds what was untracked before.")] = None
    conversion: Annotated[
        str | None, About(STRING, "Git's settings that convert files on their way into a commit, as JSON.")
    ] = None
    programs: Annotated[
        Strings,
        About(listed(STRING), "What the check runs and git does not have: NAME=FILE#CONTENT."),
    ] = ()
    branch: Annotated[str | None, About(REVISION, "The ref that HEAD stood for; absent when detached.")] = (
        None
    )
    target: Annotated[
        str | None,
        About(
            REVISION,
            "The branch that finished work is merged into; absent: it is committed where the attempt was "
            "made.",
        ),
    ] = None
    extra: Extra = NO_EXTRA


class Intent(NamedTuple):
    """A step in git, written down before it begins: a crash can be finished.

    `merge`: the checked work `commit` is being brought onto the gate's target; `commit`: `ref` (None: HEAD)
    moves from `head` to `commit`; `rollback`: the work goes to `rescue` and the work tree back to `base`.
    """

    action: Annotated[GitStep, About(choice(GitStep), "Which step.", required=True)]
    at: Annotated[str, About(MOMENT, "When it began.", required=True)]
    base: Annotated[str | None, About(REVISION, "Where the attempt began.")] = None
    head: Annotated[str | None, About(REVISION, "HEAD when the step began.")] = None
    commit: Annotated[str | None, About(REVISION, "The commit that the step moves to.")] = None
    ref: Annotated[str | None, About(REVISION, "What is moved from `head` to `commit`; absent: HEAD.")] = None
    rescue: Annotated[str | None, About(REVISION, "The commit that keeps the attempt's work.")] = None
    category: Annotated[Category | None, About(choice(Category), "Of which kind the failure is.")] = None
    message: Annotated[str | None, About(STRING, "What went wrong.")] = None
    outcome: Annotated[
        RolledBack, About(choice(RolledBack), "What the task becomes afterwards.", null=False, always=True)
    ] = "failed"
    extra: Extra = NO_EXTRA

    @property
    def oid(self) -> str:
        """The commit that is about to be merged or to be HEAD; an intent without one is a bug here."""
        assert self.commit is not None, "BUG: an intent names no commit."
        return self.commit


class Handback(NamedTuple):
    """Work that was done and could not be merged, or was cut off, and goes to an agent again at no cost."""

    reason: Annotated[str, About(STRING, "What the next agent is told.", required=True)]
    rounds: Annotated[
        int, About(integer(), "How often the work of this attempt could not be merged.", always=True)
    ] = 0
    rescue: Annotated[str | None, About(REVISION, "What keeps that work.")] = None
    base: Annotated[str | None, About(REVISION, "The commit that work was made on.")] = None
    accepted: Annotated[
        bool, About(FLAG, "The user has accepted it: it is completed as it is, and no agent works on it.")
    ] = False
    cause: Annotated[
        SentBack | None,
        About(
            choice(SentBack),
            "Why work that had passed its check went back. `judges`: it changed files that a check depends "
            "on. `vacuous`: its new tests pass without it.",
        ),
    ] = None
    merge: Annotated[
        Merge | None,
        About(choice(Merge), "Where its run would have brought it, if not into the user's branch."),
    ] = None
    target: Annotated[str | None, About(REVISION, "The branch that its run would have merged it into.")] = (
        None
    )
    extra: Extra = NO_EXTRA


class Interruption(NamedTuple):
    """What stood in the work tree when an attempt was interrupted last."""

    tree: Annotated[
        str | None, About(REVISION, "The git tree of the work tree, as it was left to whoever went on.")
    ] = None
    checkpoints: Annotated[int, About(integer(), "How many checkpoints the attempt had.", always=True)] = 0
    times: Annotated[
        int,
        About(
            integer(), "How often in a row it was just that; the third time is a failed attempt.", always=True
        ),
    ] = 1
    extra: Extra = NO_EXTRA


class Attempt(NamedTuple):
    """One attempt at the task."""

    number: Annotated[int, About(integer(1), "Which attempt it was, counted from 1.", required=True)]
    fence: Annotated[int, About(integer(), "Which claim it was.", always=True)] = 0
    outcome: Annotated[
        Outcome | None,
        About(choice(Outcome), "How it has ended; `pending`: handed back. Null while it goes on."),
    ] = None
    started_at: Annotated[str | None, About(MOMENT, "When it was claimed.")] = None
    ended_at: Annotated[str | None, About(MOMENT, "When it was over.")] = None
    cost_usd: Annotated[
        float, About(AMOUNT, "What its agents have cost, as far as they tell, in US dollars.", always=True)
    ] = 0.0
    tokens: Annotated[
        int, About(integer(), "How many tokens its agents have used, as far as they tell.", always=True)
    ] = 0
    extra: Extra = NO_EXTRA


class Recheck(NamedTuple):
    """What the check of a completed task said on a clean checkout of what is committed."""

    commit: Annotated[str, About(REVISION, "The commit that was checked out.", required=True)]
    passed: Annotated[bool, About(FLAG, "Whether the check passed there.", required=True)]
    tail: Annotated[
        str, About(NOTE, "Why it failed, and the end of what it printed.", null=False, always=True)
    ] = ""
    at: Annotated[str | None, About(MOMENT, "When it ran.", always=True)] = None
    excuse: Annotated[
        Excuse | None,
        About(
            choice(Excuse),
            "Why a failure does not make the task red. `not_reproducible`: the check passes in place at the "
            "same commit. `elsewhere`: the commit of the task is not in the history of this one.",
        ),
    ] = None
    missing: Annotated[
        Strings,
        About(
            listed(SHORT_PATH),
            "Not reproducible: files that git does not keep, and that were not in the clean checkout or "
            "different there.",
        ),
    ] = ()
    extra: Extra = NO_EXTRA
