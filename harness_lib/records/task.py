"""A task of the list and its check: each field once, with its type, default, bounds and meaning.

A new field is a line here; `python -m docs.fields` then writes the schema and the page of all fields.
The fields are in the order in which they are written into the file.
"""

from typing import Annotated, Literal, NamedTuple, get_args

from harness_lib.records.attempt import (
    NO_EXTRA,
    Attempt,
    Checkpoint,
    DoneAs,
    Extra,
    Gate,
    GitStep,
    Handback,
    Intent,
    Interruption,
    Recheck,
    SentBack,
)
from harness_lib.records.fields import (
    COMMAND,
    FLAG,
    GLOB,
    ID,
    LONG,
    LONGEST_TIMEOUT,
    MOMENT,
    NOTE,
    PATH,
    REVISION,
    SHORT_PATH,
    STRING,
    TITLE,
    About,
    Typed,
    choice,
    integer,
    listed,
    record,
)
from harness_lib.text import Strings

Status = Literal["pending", "in_progress", "completed", "failed"]
Priority = Literal["P0", "P1", "P2"]
STATUSES: tuple[Status, ...] = get_args(Status)
PRIORITIES: tuple[Priority, ...] = get_args(Priority)
# What a human must do before it can continue; `rules/attempts.py` has the consequences of each.
HaltKind = Literal[
    "CONFIG",
    "ENV_SETUP",
    "REFUSED",
    "CHECK_CHANGED",
    "SECRET",
    "JUDGES",
    "REVIEW",
    "MERGE",
    "UNSTARTED",
    "SPENT",
    "HUMAN",
]
HALT_KINDS: tuple[HaltKind, ...] = get_args(HaltKind)

DEFAULT_TIMEOUT_SECONDS = 300
DEFAULT_MAX_ATTEMPTS = 3


class HeldOut(NamedTuple):
    """A held-out check; what it is made of is kept outside of the list, in the user's data directory."""

    sha256: Annotated[str, About(STRING, "SHA-256 of what is kept there.", required=True)]
    extra: Extra = NO_EXTRA


class Validation(NamedTuple):
    """The check that decides whether the task is done."""

    command: Annotated[
        str | None,
        About(
            COMMAND,
            "Exits 0 exactly when the task is done; empty or absent: the task cannot be completed.",
            always=True,
            typed=Typed(
                "--validate",
                "CMD",
                "the check: it exits 0 exactly when the task is done",
                "the check",
                words=("check", "validate", "validation"),
            ),
        ),
    ] = None
    timeout_seconds: Annotated[
        int,
        About(
            integer(1, LONGEST_TIMEOUT),
            "Seconds until the check is stopped.",
            null=True,
            always=True,
            typed=Typed("--timeout", "SEC", "for the check", words=("timeout", "timeout seconds")),
        ),
    ] = DEFAULT_TIMEOUT_SECONDS
    cwd: Annotated[
        str | None,
        About(
            PATH,
            "Where the check runs, relative to the root of the worktree.",
            typed=Typed(
                "--cwd", "DIR", "where the check runs, from the top of the work tree", words=("cwd",)
            ),
        ),
    ] = None
    protect: Annotated[
        Strings,
        About(
            listed(GLOB),
            "Globs of files that an attempt may not change.",
            typed=Typed(
                "--protect",
                "GLOB",
                "files that an attempt may not change, nor what the check names and how its runner is set "
                "up; may be repeated. auto: work must also pass with the files that its check depends on as "
                "they were (always so in run), none: it need not; !GLOB: these files go free",
                "replaces what was protected; may be repeated",
                words=("protect",),
            ),
        ),
    ] = ()
    red_first: Annotated[
        bool,
        About(
            FLAG,
            "The check must fail before work starts.",
            typed=Typed(
                "--red-first",
                None,
                "the check must fail before work starts",
                words=("red_first", "red first"),
            ),
        ),
    ] = False
    hidden: Annotated[
        HeldOut | None,
        About(
            record(HeldOut),
            "A check that agents do not see, which must pass too; in an imported file what `--hidden` takes.",
            typed=Typed(
                "--hidden",
                "CMD|FILE[:PATH]",
                "a held-out check, which agents do not see: a command, an executable file, or a file that is "
                "put at PATH for it (alone, the task's own check runs with it); may be repeated",
                "replaces what was held out; may be repeated",
                words=("hidden", "held out"),
            ),
        ),
    ] = None
    hidden_names: Annotated[
        bool,
        About(
            FLAG,
            "An agent is told the names of held-out tests that fail.",
            typed=Typed(
                "--hidden-names",
                None,
                "tell agents the names of held-out tests that fail",
                words=("hidden_names", "hidden names"),
            ),
        ),
    ] = False
    extra: Extra = NO_EXTRA


class OnFailure(NamedTuple):
    """What follows a failed attempt."""

    cleanup: Annotated[
        str | None,
        About(
            COMMAND,
            "Run after the rollback.",
            always=True,
            typed=Typed("--cleanup", "CMD", "run after a failed attempt was rolled back", words=("cleanup",)),
        ),
    ] = None
    extra: Extra = NO_EXTRA


class Source(NamedTuple):
    """The task of a plan that a task was imported from."""

    plan: Annotated[str, About(STRING, "The file of the plan, from the top of the work tree.", required=True)]
    key: Annotated[str, About(STRING, "What the plan calls the task, such as `3` or `T012`.", required=True)]
    extra: Extra = NO_EXTRA


class Task(NamedTuple):
    """One piece of work, its check, and how it has fared."""

    id: Annotated[
        str,
        About(ID, "Names it in commands, logs and dependencies.", required=True, typed=Typed(words=("id",))),
    ]
    title: Annotated[
        str,
        About(
            TITLE,
            "One line for people.",
            null=False,
            always=True,
            typed=Typed("--title", "TEXT", "what is to be done", ""),
        ),
    ] = ""
    status: Annotated[
        Status,
        About(
            choice(Status),
            "`in_progress` is transient: found at the start of a session it means an interrupted one.",
            required=True,
        ),
    ] = "pending"
    priority: Annotated[
        Priority,
        About(
            choice(Priority),
            "P0 goes first.",
            null=False,
            always=True,
            typed=Typed("--priority", words=("priority",)),
        ),
    ] = "P1"
    depends_on: Annotated[
        Strings,
        About(
            listed(STRING),
            "Ids of tasks of this list that must be completed first.",
            always=True,
            typed=Typed(
                "--depends-on",
                "ID",
                "finish this first; may be repeated or ID,ID",
                "replaces its dependencies; may be repeated or ID,ID",
                splits=True,
                words=("after", "depends on", "depends", "needs", "requires"),
            ),
        ),
    ] = ()
    attempts: Annotated[int, About(integer(), "Finished attempts that failed.", always=True)] = 0
    max_attempts: Annotated[
        int,
        About(
            integer(1),
            "After as many failed attempts the task has failed for good.",
            always=True,
            typed=Typed("--max-attempts", "N", "", words=("max_attempts", "max attempts")),
        ),
    ] = DEFAULT_MAX_ATTEMPTS
    started_at_commit: Annotated[
        str | None,
        About(REVISION, "HEAD when the attempt began; the attempt is rolled back to it.", always=True),
    ] = None
    validation: Annotated[
        Validation, About(record(Validation, "validation"), "The objective check.", always=True)
    ] = Validation()
    on_failure: Annotated[
        OnFailure, About(record(OnFailure, "on_failure"), "What follows a failed attempt.", always=True)
    ] = OnFailure()
    error_log: Annotated[
        Strings,
        About(
            listed(STRING), "Why attempts failed, oldest first; each begins with its [CATEGORY].", always=True
        ),
    ] = ()
    checkpoints: Annotated[
        tuple[Checkpoint, ...],
        About(listed(record(Checkpoint, "checkpoint")), "Progress inside the current attempt.", always=True),
    ] = ()
    completed_at: Annotated[str | None, About(MOMENT, "When the check passed.", always=True)] = None
    completed_commit: Annotated[
        str | None,
        About(
            REVISION,
            "The commit that holds the finished work: a worker in another worktree must have it before it "
            "may claim a task that depends on this one.",
        ),
    ] = None
    description: Annotated[
        str | None,
        About(
            LONG,
            "What is to be done, in as many words as it needs.",
            typed=Typed(
                "--description",
                "TEXT",
                "more for the agent to know",
                "",
                repeats=True,
                words=("description",),
            ),
        ),
    ] = None
    source: Annotated[
        Source | None, About(record(Source), "The plan that it was imported from, and its name there.")
    ] = None
    claimed_by: Annotated[str | None, About(STRING, "The worker that has it.")] = None
    claimed_at: Annotated[str | None, About(MOMENT, "When that worker claimed it.")] = None
    lease_expires_at: Annotated[
        str | None,
        About(
            MOMENT, "After this moment others may take it over (concurrent mode); absent, it is never stale."
        ),
    ] = None
    worktree: Annotated[str | None, About(PATH, "The git worktree that the attempt works in.")] = None
    machine: Annotated[
        str | None, About(STRING, "The machine of the last attempt, if the list is in a database.")
    ] = None
    failed_at: Annotated[str | None, About(MOMENT, "When the last attempt failed.")] = None
    halt: Annotated[str | None, About(STRING, "Reason the task is blocked on a human.")] = None
    halt_kind: Annotated[
        HaltKind | None,
        About(choice(HaltKind), "What a human must do before it continues; absent: what the halt says."),
    ] = None
    halt_about: Annotated[
        Strings,
        About(listed(STRING), "The files to accept, the pull request to merge, or the command that ends it."),
    ] = ()
    proof: Annotated[
        str | None,
        About(
            STRING,
            "Written by harness when the check has passed: which check, in which attempt, in which commit.",
        ),
    ] = None
    repairs: Annotated[
        str | None,
        About(STRING, "The task whose check failed on the final tree of a run; this one puts that right."),
    ] = None
    fence: Annotated[
        int, About(integer(), "Grows with every claim; whoever holds an older one may change nothing.")
    ] = 0
    interruptions: Annotated[
        int, About(integer(), "How often the attempt under way was cut off; that costs it nothing.")
    ] = 0
    unproven: Annotated[bool, About(FLAG, "Marked completed by an external edit; not yet verified.")] = False
    notes: Annotated[Strings, About(listed(NOTE), "What its worker wants later ones to know.")] = ()
    touched: Annotated[
        Strings,
        About(listed(SHORT_PATH), "The files that its check depends on and its last attempt has changed."),
    ] = ()
    look_at: Annotated[
        Strings,
        About(listed(STRING), "What a user should look at in the work that completed it, a sentence each."),
    ] = ()
    outcome: Annotated[
        DoneAs | None,
        About(
            choice(DoneAs),
            "How it was completed. `already_done`: its check passed before any work, and nothing was "
            "changed. `flaky`: its check failed and passed on the same content. Absent: as usual.",
        ),
    ] = None
    accepted: Annotated[
        Strings,
        About(
            listed(SHORT_PATH), "Files whose changes a user has accepted; else they would stop its commit."
        ),
    ] = ()
    sent_back: Annotated[
        tuple[SentBack, ...],
        About(listed(choice(SentBack)), "Why its work went back to an agent at no cost, each reason once."),
    ] = ()
    attempted_by: Annotated[Strings, About(listed(STRING), "The last workers that have claimed it.")] = ()
    gate: Annotated[Gate | None, About(record(Gate, "gate"), "What the attempt may not weaken.")] = None
    intent: Annotated[
        Intent | None,
        About(
            record(Intent, "intent"),
            "The step in git that is in progress; `harness recover` finishes it after a crash.",
        ),
    ] = None
    handback: Annotated[
        Handback | None,
        About(
            record(Handback, "handback"),
            "Why work that had been done goes to an agent again, at no cost to the task.",
        ),
    ] = None
    interrupted: Annotated[
        Interruption | None,
        About(
            record(Interruption, "interruption"),
            "What stood there at the last interruption: evidence for recovery.",
        ),
    ] = None
    recheck: Annotated[
        Recheck | None,
        About(
            record(Recheck, "recheck"),
            "What the check of the completed task said when it last ran on a clean checkout of what is "
            "committed.",
        ),
    ] = None
    attempt_log: Annotated[
        tuple[Attempt, ...],
        About(
            listed(record(Attempt, "attempt")),
            "The last attempts that were made here: when, what each has cost, how it went.",
        ),
    ] = ()
    extra: Extra = NO_EXTRA

    @property
    def target(self) -> str | None:
        """The branch that a run merges the work into; None if it is committed where the attempt was made."""
        return self.gate.target if self.gate else None

    @property
    def step(self) -> GitStep | None:
        """What is about to happen in git; None if nothing is."""
        return self.intent.action if self.intent else None

    @property
    def begun(self) -> Intent:
        """What is about to happen in git; a task without it is a bug here."""
        assert self.intent is not None, f"BUG: task {self.id} has no intent."
        return self.intent

    @property
    def kept(self) -> str | None:
        """The ref with the work that the task was handed back with; None without any."""
        return self.handback.rescue if self.handback else None

    @property
    def is_done(self) -> bool:
        """Whether the task is completed and harness itself has recorded that."""
        return self.status == "completed" and not self.unproven
