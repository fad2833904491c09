"""The context of a command (environment, identity, list and work tree, found when first needed); its reply.

A reply is one value, rendered as text or as JSON by `cli`.
Source: docs/design.md, "The verbs", the reply object.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from harness_lib import typed
from harness_lib.errors import EnvSetupError, Exit, NoRepositoryError, UsageError
from harness_lib.rules import recovery
from harness_lib.state import answers, api, reading
from harness_lib.state.store import Store
from harness_lib.system.clock import SYSTEM, Clock
from harness_lib.system.git import repository, snapshot, status, worktrees
from harness_lib.system.install import launcher
from harness_lib.system.place import data_home, find_root, roots
from harness_lib.system.processes import environment, owner
from harness_lib.task import NO_EXTRA, Merge, RunStop, Session, StopReason, Task
from harness_lib.text import Strings

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from harness_lib.system.git.repository import Git

# What prints a text for the caller.
Say = Callable[[str], None]
MergeMode = Literal["push", "pull-request", "local", "branch", "turns"]
# What the user may choose; the last one is that of a list in a database.
MERGE_MODES: tuple[MergeMode, ...] = ("push", "pull-request", "local", "branch")


class Merging(NamedTuple):
    """What becomes of finished work: `mode`, and for a remote its name, its branch and a command.

    `branch` is the full name of the branch there; `command` opens a pull request, "" if none is needed.
    `onto`: the full name of the branch there that machines merge into instead, for others to take over.
    `by`: the worker of the run that merges what the others have finished; "": each merges its own.
    """

    mode: MergeMode = "local"
    remote: str = ""
    branch: str = ""
    command: str = ""
    onto: str = ""
    by: str = ""

    @property
    def proposes(self) -> bool:
        """Return whether others merge the work, as a pull request asks them to."""
        return bool(self.command)

    @property
    def elsewhere(self) -> Merge | None:
        """Where finished work goes, if not into the branch of the user."""
        if self.proposes:
            return "pull-request"
        return "branch" if self.mode == "branch" or self.onto else None


# What lets the driver of the database in: neither agents nor checks get it.
_OF_DATABASE = ("PGPASSWORD", "PGPASSFILE", "PGSERVICEFILE", "PGSSLKEY", "PGSSLCERT")
# How many directories of other lists a message names.
NAMED = 3


def _silent(_text: str) -> None:
    """Say nothing."""


def _for_commands(env: environment.Env, cwd: Path) -> environment.Env:
    """Return `env` for agents and checks: without what lets the driver into the database of the list.

    The driver reads the environment of this process.
    """
    if env.keys().isdisjoint(_OF_DATABASE):
        return env
    root = find_root.search(env, os.fspath(cwd))
    if root is None or not os.path.exists(roots.Root(Path(root)).link):  # noqa: PTH110 (see `Context.store`)
        return env
    return {name: value for name, value in env.items() if name not in _OF_DATABASE}


def of_another_user(directory: Path) -> UsageError:
    """Return the error for a list in `directory`, which `find_root.search` passes over."""
    return UsageError(
        f"A list in {directory} is ignored, because the directory belongs to another user "
        "and its checks are commands.",
        "Work as its owner (in a container: start it with that user), or make the directory yours.",
    )


def _opened(path: Path, data: str = "") -> Git:
    around = worktrees.around(path, data) if data and find_root.worker(data, str(path)) else None
    return around or repository.Git.open(path)


class Context:
    """The caller's environment, directory, identity, task list and git work tree.

    `say` prints a notice on stderr; `busy` prints what takes long, and only for a user who waits for it: an
    agent would read it when all is over, and pay for it.
    `at_terminal`: a user types, and can be asked.
    `target` is the full name of the branch that finished work is merged into; None: it is committed where it
    was made. `merging` says what becomes of it then. No task may change what the globs `protect` match.
    `session`: what the caller works in, since it is known; a view has that of its time.
    """

    session: Session

    def __init__(
        self,
        *,
        env: environment.Env,
        cwd: Path,
        clock: Clock = SYSTEM,
        say: Say = _silent,
        busy: Say = _silent,
        at_terminal: bool = False,
        target: str | None = None,
        merging: Merging = Merging(),  # noqa: B008 (a record that never changes)
        protect: Sequence[str] = (),
    ) -> None:
        self.env = _for_commands(env, cwd)
        self.cwd = cwd
        self.clock = clock
        self.say = say
        self.busy = busy
        self.at_terminal = at_terminal
        self.target = target
        self.merging = merging
        self.protect = tuple(protect)
        # Remotes that this command, in any of its views, has waited for in vain; and why.
        self.away: dict[str, str] = {}
        # The context of the same list in another work tree, of which this is a view.
        self._origin: Context | None = None

    @cached_property
    def root(self) -> roots.Root:
        """The state root. Raises UsageError if there is none."""
        root = roots.find(self.env, self.cwd)
        if not root:
            raise self._no_list()
        roots.require_direct(root)
        return root

    def _no_list(self) -> UsageError:
        none = f"No {find_root.STATE_FILE} in {self.cwd} or above it"
        foreign = roots.of_another_user(self.cwd)
        if foreign:
            return of_another_user(foreign)
        others = roots.elsewhere(self.cwd)
        if not others:
            make = typed.harness("init")
            try:
                _opened(self.cwd)
            except NoRepositoryError:
                make = typed.harness("init", "--git")
            except EnvSetupError as error:
                return UsageError(f"{none}. {error.message}", error.hint)
            return UsageError(f"{none}.", f"Make one with: {make}")
        places = ", ".join(map(str, others[:NAMED]))
        change_directory = typed.change_to(others[0])
        return UsageError(
            f"{none}; this repository has one in {places}.", f"Type it there: {change_directory}"
        )

    @cached_property
    def store(self) -> api.Store:
        """Access to the list. Raises EnvSetupError if it is in a database and the driver is missing."""
        if not os.path.exists(self.root.link):  # noqa: PTH110 (Path.exists() raises where we may not look)
            return Store(self.root, clock=self.clock, caller=lambda: self.owner.pid)
        if "HARNESS_SUPERVISED" in self.env:
            from harness_lib.state.mirrored import Mirrored  # noqa: PLC0415 (as the driver: for those few)

            return Mirrored(self.root, self.clock)
        launcher.add_postgres(self.env)
        from harness_lib.state.pgstore.store import opened  # noqa: PLC0415 (needs the driver)

        return opened(self.root, self.clock)

    @property
    def shared(self) -> api.Shared | None:
        """What a list of many machines has besides; None for a list of one machine."""
        return self.store.shared

    def ask(self) -> api.Questions:
        """Return the questions about the list as it is now, as the store does."""
        return self.store.ask()

    def transaction(self, kind: api.Kind = "list") -> AbstractContextManager[api.Tx]:
        """Lock the list for one change, as the store does."""
        return self.store.transaction(kind)

    @property
    def own_env(self) -> environment.Env:
        """The environment for a process of harness itself, with what lets it into the database."""
        return {**self.env, **{name: os.environ[name] for name in _OF_DATABASE if name in os.environ}}

    def holds(self, task: Task) -> bool:
        """Return whether the caller has `task` in progress."""
        return recovery.is_mine(task, self.owner.worker)

    def held(self, questions: api.Questions) -> Task | None:
        """Return the task that the caller has in progress; None if it has none."""
        return questions.held_by(self.owner.worker)

    def own_session(self, questions: api.Questions) -> Session | None:
        """Return the open session that this worker works in."""
        return questions.session(self.owner.worker)

    def is_of_session(self, task: Task) -> bool:
        """Return whether a worker of the caller's session has claimed `task`."""
        return recovery.works_for(task.claimed_by, self.session.worker)

    @property
    def agent(self) -> str | None:
        """The name of the agent that calls; None for a user."""
        return owner.in_agent(self.env)

    @property
    def machine(self) -> str:
        """The name of this machine in a list that machines share."""
        return owner.machine(self.env)

    def no_list(self) -> api.Questions:
        """Return the answers about a list that is still to be made."""
        return answers.of_no_list(self.clock.now())

    @cached_property
    def owner(self) -> owner.Owner:
        """The worker that calls, and the process that owns its session."""
        return owner.current(self.env)

    @cached_property
    def git(self) -> Git:
        """The work tree that the caller works in.

        A submodule or a nested repository inside the project is not it; a linked worktree or, with
        HARNESS_STATE_ROOT, a separate clone is.
        """
        git = self.git_at_cwd
        if not git:
            return self.main
        if git.top == self.root.path or git.top in self.root.path.parents:
            return git
        if self.env.get("HARNESS_STATE_ROOT") or git.common_dir == self.main.common_dir:
            return git
        return self.main

    @cached_property
    def git_at_cwd(self) -> Git | None:
        """The work tree around the current directory; None if there is none that git may use."""
        try:
            return _opened(self.cwd, data_home.directory(self.env))
        except EnvSetupError:
            return None

    @cached_property
    def main(self) -> Git:
        """The work tree around the list. Raises EnvSetupError if there is none."""
        if self._origin:
            return self._origin.main
        here = self.git_at_cwd
        return here if here and here.top == self.root.path else _opened(self.root.path)

    @property
    def git_of_list(self) -> Git:
        """The work tree around the list: the caller's, or `main`. Raises EnvSetupError if there is none."""
        is_inside = self.git.top == self.root.path or self.git.top in self.root.path.parents
        return self.git if is_inside else self.main

    def at(self, git: Git) -> Context:
        """Return a view of this context from another work tree of the same repository."""
        known = {"root": self.root, "store": self.store, "owner": self.owner, "git": git, "git_at_cwd": git}
        view = copy(self)
        for name in ("main", "_inside", "list_is_tracked"):
            view.__dict__.pop(name, None)
        env = environment.moved(self.env, self.main.top, git.top)
        view.__dict__.update(known, cwd=git.top, env=env, _origin=self)
        return view

    @property
    def excluded_paths(self) -> Strings:
        """What is never committed and never rolled back, relative to the top of a work tree.

        That is harness's own files and, in a chat, other work trees of the repository, as Claude Code makes
        them inside. Asked anew each time: a broken list is set aside beside the whole one in the middle of a
        verb.
        """
        others = status.work_trees_inside(self.git) if self.target is None else ()
        if not self._inside:
            return tuple(others)
        names = dict.fromkeys((*self.root.standing_names(), find_root.INIT_SCRIPT, find_root.SETTINGS))
        return (*(str(self._inside / name) for name in names), *others)

    def capture(self) -> str:
        """Return the tree of the work tree as it is now; `excluded_paths` are in it as in HEAD."""
        return snapshot.capture(self.git, self.excluded_paths)

    def changes(self) -> status.Changes:
        """Return what differs from HEAD in the work tree, without `excluded_paths`."""
        return status.changes(self.git, self.excluded_paths)

    @property
    def private_here(self) -> Path | None:
        """Where this work tree would have the private directory of the state root; None in no repository.

        Like that one it is never committed and never rolled back.
        """
        return None if not self._inside else self.git.top / self._inside / find_root.PRIVATE_DIR

    @cached_property
    def _inside(self) -> Path | None:
        """Return the way from the top of a work tree to the state root; None where it is in no repository."""
        top = self.git.top
        if top != self.root.path and top not in self.root.path.parents:
            try:
                top = self.main.top
            except EnvSetupError:
                return None
        return self.root.path.relative_to(top)

    @cached_property
    def list_is_tracked(self) -> bool:
        """Whether git tracks the list, its init script, or what a lost list is restored from.

        Any of them may then change with every pull.
        """
        root = self.root
        try:
            git = self.git_of_list
        except EnvSetupError:
            return False
        return git.is_tracked(
            self.store.list_file, root.init_script, self.store.backup_file, *root.private_paths()
        )

    @property
    def lease_seconds(self) -> int:
        """How long a claim is valid without a heartbeat (concurrent mode)."""
        return recovery.seconds(self.env.get("HARNESS_LEASE_SECONDS"))


class Reply(NamedTuple):
    """The outcome of a verb.

    `message` is for the caller, `next` is the next command, `stop` is the reason why nothing is left to do.
    `extra` has additional keys of the verb for the JSON object. `verb` is its name, which `cli` fills in.
    """

    message: str
    exit: Exit = Exit.DONE
    session: int | None = None
    task: Task | None = None
    stop: StopReason | RunStop | None = None
    next: str | None = None
    warnings: Strings = ()
    extra: Mapping[str, object] = NO_EXTRA
    verb: str = ""

    def document(self) -> dict[str, object]:
        """Return the JSON object of schemas/reply.schema.json."""
        return {
            "ok": self.exit is Exit.DONE,
            "verb": self.verb,
            "exit": int(self.exit),
            "session": self.session,
            "task": reading.written(self.task) if self.task else None,
            "stop": {"reason": self.stop} if self.stop else None,
            "next": self.next,
            "message": self.message,
            "error": None,
            "warnings": list(self.warnings),
            **self.extra,
        }
