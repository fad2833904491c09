"""Name the branch and the refs of the remote that the machines share, fetch from it and push to it.

`refs/harness/<list>/` in the remote has the turn of each branch (`turn/<branch>`), unfinished work
(`wip/<task>/<fence>`) and the work of ended attempts (`rescue/<task>/<attempt>-<fence>`). This machine has
copies of the first two under `refs/harness/there/<list>/`. What leaves it, and to which remote, stands in the
clone's git settings: `git config` shows and changes them.
Source: docs/many-machines.md, "What git does".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from harness_lib import errors, typed
from harness_lib.attempts import outcome, target_branch, worker_worktrees
from harness_lib.core.context import Context
from harness_lib.errors import ConfigError, HeldError, NotPushedError, RemoteAwayError, UsageError
from harness_lib.system.git import calls, merge, worktrees
from harness_lib.system.git.repository import Git
from harness_lib.system.processes import child
from harness_lib.task import Task
from harness_lib.text import safe_name

REFS = "refs/harness/"
# For a host that takes branches only.
BRANCHES = "refs/heads/harness/"
MOST_MEGABYTES = 100
_SECTION = "harness."
_WORK, _TARGET = f"{_SECTION}workRemote", f"{_SECTION}targetRemote"
_SNAPSHOTS, _MOST, _REFS = f"{_SECTION}snapshots", f"{_SECTION}maxSnapshot", f"{_SECTION}refs"
# Workers of one machine may fetch the same refs in the same moment.
FETCHES = 5
NO_BRANCH = "couldn't find remote ref"
# What git says of a linked work tree without a commit.
_HALF_MADE = "bad object worktrees/"
SECONDS = 120.0
# How long a command waits for a remote that is away, as a change does for the database; a run waits longer.
PATIENCE_SECONDS, AGAIN_SECONDS = 30.0, 1.0
# What git and the remote's system say of a full disk or a lost connection. A remote that says it in another
# language counts as one that refuses.
_FULL = re.compile(r"no space left|disk quota|couldn't write", re.IGNORECASE)
_LOST = re.compile(
    r"hung up|timed out|early eof|unable to connect|could not resolve|connection (?:re|closed)"
    r"|failed to connect|unreachable|no route to|returned error: (?:5\d\d|408|429)",
    re.IGNORECASE,
)
# A remote that says this has answered: its hook may say of itself that it has timed out. Of a push that a web
# server forbids or finds too large, and of one that needs what the remote lacks, git says also "hung up".
_ANSWERED = re.compile(r"\[remote rejected\]|returned error: 4(?!08|29)\d\d|does not support")
# Records end with it in what `git log` prints.
_END = "\x1e"


class Leaving(NamedTuple):
    """Names of remotes, "" for the one of the branch, and what goes there.

    `work`: for unfinished work; `target`: for the branch. `snapshots` False: unfinished work stays at home.
    `most`: megabytes of an attempt that are pushed before it is finished. `refs` begins the names of refs.
    """

    work: str = ""
    target: str = ""
    snapshots: bool = True
    most: int = MOST_MEGABYTES
    refs: str = REFS


class Answer(NamedTuple):
    """Whether git has done what it was asked for, and why not, or what it has printed."""

    done: bool
    why: str = ""
    out: str = ""


class There(NamedTuple):
    """The list (as a part of a ref's name), a remote, the full name of a branch there, and the repository.

    `base`: the full name of the branch that others merge `branch` into, if nobody here may push it.
    `leaving`: what goes to which remote. `ctx`: who talks to it.
    """

    ctx: Context
    name: str
    remote: str
    branch: str
    git: Git
    base: str = ""
    leaving: Leaving = Leaving()

    @property
    def work(self) -> str:
        """Return the remote that unfinished work goes to."""
        return self.leaving.work or self.remote

    @property
    def tracking(self) -> str:
        """Return the ref that says where the branch was when it was fetched last."""
        return self.followed(self.branch)

    def followed(self, branch: str) -> str:
        """Return the ref that says where `branch` was when it was fetched last."""
        return f"refs/remotes/{self.remote}/{target_branch.short(branch)}"

    @property
    def shown(self) -> str:
        """Return the name of the branch for messages."""
        return f"{self.remote}/{target_branch.short(self.branch)}"

    @property
    def target(self) -> str:
        """Return the local branch that is where the remote's is, and that attempts of a run begin on."""
        return target_branch.waiting(self.base or self.branch)

    @property
    def tip(self) -> str | None:
        """Return the commit of the branch when it was fetched last, with what others have merged since.

        Where they have merged all of it, perhaps in other commits, that is where their branch is.
        """
        git, own = self.git, self.git.ref(self.tracking)
        theirs = git.ref(self.followed(self.base)) if self.base else None
        if own is None or theirs is None:
            return own or theirs
        message = f"Merge what was committed meanwhile into {target_branch.short(self.branch)}\n"
        both = merge.join(git, own, theirs, message) or own
        return theirs if both != own and git.tree_of(both) == git.tree_of(theirs) else both

    def ref(self, *parts: str) -> str:
        """Return the name of a ref of the list in the remote."""
        return "/".join((f"{self.leaving.refs}{self.name}", *parts))

    def copy(self, *parts: str) -> str:
        """Return the name of the copy of such a ref on this machine."""
        return "/".join((f"{REFS}there/{self.name}", *parts))

    def ask(self, *args: str, hooks: bool = False) -> Answer:
        """Let git talk to the remote, for at most `SECONDS` seconds; `hooks`: with those of the user.

        A repository with a work tree that is being made, or was when git was killed, fetches nothing until
        that has a commit or is gone.
        """
        answer = self._ask(*args, hooks=hooks)
        if _HALF_MADE not in answer.why:
            return answer
        worktrees.drop_half_made(self.git, worker_worktrees.home(self.ctx))
        return self._ask(*args, hooks=hooks)

    def _ask(self, *args: str, hooks: bool) -> Answer:
        quiet = () if hooks else ("-c", "core.hooksPath=/dev/null")
        command = ("git", *quiet, "-c", "gc.auto=0", "-c", "maintenance.auto=false", *args)
        try:
            said = child.ask(command, env=calls.clean_env(self.ctx.env), cwd=self.git.top, seconds=SECONDS)
        except TimeoutError:
            what, name = args[0], next(word for word in args[1:] if not word.startswith("-"))
            why = f"git {what} has timed out, as {name} gave no answer for {SECONDS:g} seconds"
            return Answer(done=False, why=why)
        except OSError as error:
            return Answer(done=False, why=errors.describe(error))
        return Answer(said.code == 0, target_branch.gist(said.complaint + said.output), said.output)

    def fetch(self) -> Answer:
        """Fetch the branch, and the turns of all branches."""
        turns = f"+{self.ref('turn')}/*:{self.copy('turn')}/*"
        answer = self._fetch(self.base or self.branch, turns)
        if not self.base or not answer.done:
            return answer
        own = self._fetch(self.branch)
        if NO_BRANCH not in own.why:
            return own
        # Nothing was merged there yet, or a host has deleted it with its pull request.
        self.git.delete_ref(self.tracking)
        return answer

    def _fetch(self, branch: str, *specs: str) -> Answer:
        spec = f"+{branch}:{self.followed(branch)}"
        args = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", self.remote, spec, *specs)
        answer = self.ask(*args)
        for _ in range(FETCHES):
            if "cannot lock ref" not in answer.why:
                break
            answer = self.ask(*args)
        return answer

    def listed(self, name: str, *patterns: str) -> dict[str, str]:
        """Return the objects of the refs of the remote called `name`, by ref. Raises RemoteAwayError."""
        answer = self.ask("ls-remote", "--quiet", name, *patterns)
        require_answer(answer, name, f"{name} cannot be asked for its refs")
        pairs = (line.partition("\t") for line in answer.out.splitlines())
        return {ref: oid for oid, _, ref in pairs}

    def require(self) -> str:
        """Fetch the branch and return its commit; a chat waits a while for a remote that cannot be reached.

        Raises RemoteAwayError: the remote does not answer, or a command has waited for it in vain before.
        Raises NotPushedError: it has no such branch, and never had.
        """
        why = self.ctx.away.get(self.remote, "")
        answer = Answer(done=False, why=why) if why else self._waited()
        tip = self.tip
        if tip is None and NO_BRANCH in answer.why:
            raise _not_pushed(self.git, self.branch)
        reached = answer._replace(done=answer.done and tip is not None)
        require_answer(reached, self.remote, f"{self.shown} cannot be fetched")
        return tip or ""

    def _waited(self) -> Answer:
        is_chat = self.ctx.target is None
        until = self.ctx.clock.monotonic() + (PATIENCE_SECONDS if is_chat else 0)
        while not (answer := self.fetch()).done and _LOST.search(answer.why):
            if self.ctx.clock.monotonic() >= until:
                if is_chat:
                    self.ctx.away[self.remote] = answer.why
                break
            self.ctx.busy(f"waiting for {self.remote} …")
            self.ctx.clock.sleep(AGAIN_SECONDS)
        return answer

    def fetched(self, *specs: str, prunes: bool = False) -> Answer:
        """Fetch refs with unfinished work; `prunes`: copies of what is gone there are removed."""
        quiet = ("--quiet", "--no-tags", *(("--prune",) if prunes else ()))
        return self.ask("fetch", *quiet, self.work, *specs)

    def follow(self, tip: str) -> None:
        """Let the local branch of runs be at `tip`, as the remote's, and the user's branch if it is free.

        What the local branch of runs has and `tip` lacks, such as work that a run with `--merge branch` has
        finished, is kept on a branch of its own.
        """
        git, mine = self.git, self.branch
        old = git.ref(self.target)
        if old is not None and not git.is_ancestor(old, tip) and _has_more(git, old, tip):
            kept = f"{self.target}-{old[:12]}"
            git.set_ref(kept, old)
            names = target_branch.short(self.target), target_branch.short(kept)
            said = f"{names[0]} had commits that {self.shown} lacks; they are kept on the branch {names[1]}."
            self.ctx.say(said)
        if old != tip:
            git.set_ref(self.target, tip)
        if self.base:
            return
        at = git.ref(mine)
        is_of_run = self.ctx.target is not None and target_branch.upstream(git, mine) == (
            self.remote,
            self.branch,
        )
        if is_of_run and at not in (None, tip) and git.is_ancestor(at, tip):
            with suppress(target_branch.MovedError, calls.GitError, HeldError):
                target_branch.carry_out(self.ctx, target_branch.Move(mine, at), tip)

    def push(self, *args: str, hooks: bool = False) -> Answer:
        """Push refs to the remote."""
        return self.ask("push", "--porcelain", *args, hooks=hooks)


def of(ctx: Context, task: Task | None = None) -> There:
    """Return where the finished work of `task` goes: by default that of the caller's branch.

    Raises EnvSetupError if the branch has none on a remote.
    """
    git = ctx.git if ctx.git.common_dir != ctx.main.common_dir else ctx.main
    settings = read_leaving(git)
    if ctx.merging.mode == "turns":
        to, branch, onto = ctx.merging.remote, ctx.merging.branch, ctx.merging.onto
        return There(ctx, outcome.list_name(ctx), to, onto or branch, git, branch if onto else "", settings)
    gate = task.gate if task else None
    here = ctx.git.branch() or ""
    of_run = gate.target.removeprefix(target_branch.WAITING) if gate and gate.target else None
    # The branch of a run has the name that it has in the remote.
    branch = target_branch.HEADS + of_run if of_run else (gate.branch if gate else None) or here
    found = target_branch.upstream(git, branch) or target_branch.upstream(git, here)
    if not found:
        raise _not_pushed(git, branch)
    remote, upstream = found
    to = settings.target or remote
    return There(ctx, outcome.list_name(ctx), to, branch if of_run else upstream, git, leaving=settings)


def _not_pushed(git: Git, branch: str) -> NotPushedError:
    name = target_branch.short(branch) or "HEAD"
    return NotPushedError(
        f"{name} has no branch on a remote, which the machines of a list in a database share.",
        target_branch.to_push(git, name),
    )


def require_answer(answer: Answer, name: str, problem: str) -> None:
    """Raise RemoteAwayError, which says the `problem`, if the remote called `name` has not done it."""
    if not answer.done:
        see = f"See whether it answers: {typed.git('ls-remote', name)}"
        raise RemoteAwayError(f"{problem}: {answer.why}.", see)


def refresh(ctx: Context) -> str:
    """Let the local branch of the run be where the remote's is; return the commit. Raises RemoteAwayError."""
    there = of(ctx)
    tip = there.require()
    there.follow(tip)
    return tip


def _has_more(git: Git, old: str, tip: str) -> bool:
    """Return whether `old` has more than commits that `tip` has, too, made anew as by a rebase."""
    is_merged = git.text("rev-list", "--count", "--merges", old, f"^{tip}", "--") != "0"
    return is_merged or any(line.startswith("+") for line in git.text("cherry", tip, old).splitlines())


def require_refusal(there: There, answer: Answer) -> None:
    """Raise RemoteAwayError if a push has failed for a reason that passes by itself, and not by refusal."""
    is_lost = _LOST.search(answer.why) and not _ANSWERED.search(f"{answer.out} {answer.why}")
    if is_lost or _FULL.search(answer.why):
        raise RemoteAwayError(f"{there.remote} did not take the push: {answer.why}.", "Try again.")


class Landed(NamedTuple):
    """A commit on the branch that is the work of a claim of a task."""

    task: str
    fence: int
    commit: str


def landed(git: Git, name: str, *commits: str) -> Iterator[Landed]:
    """Yield what the trailers of `commits` (words of `git rev-list`) say of the list `name`, newest first."""
    shape = f"--format=%H%n%(trailers:key={outcome.TRAILER},valueonly){_END}"
    for record in git.text("log", shape, *commits, "--").split(_END):
        oid, *values = record.split() or [""]
        for value in values:
            of_list, _, rest = value.partition("/")
            task, _, fence = rest.rpartition("/")
            if of_list == name and fence.isdigit():
                yield Landed(task, int(fence), oid)


def found(there: There, task: Task) -> str | None:
    """Return the commit on the fetched branch with the work of the claim of `task`, or one before it.

    Only what came after the attempt had begun is its own.
    """
    git, tip, base = there.git, there.tip, task.started_at_commit
    if tip is None:
        return None
    named = task.intent.commit if task.intent and task.intent.action == "commit" else None
    if named and git.exists(named) and git.is_ancestor(named, tip):
        return named
    span: Sequence[str] = (tip,) if base is None or not git.exists(base) else (tip, f"^{base}")
    known = {task.fence, task.fence - 1} if len(span) == 1 else range(task.fence + 1)
    safe, of_list = safe_name(task.id), landed(git, there.name, *span)
    return next((each.commit for each in of_list if each.task == safe and each.fence in known), None)


def read_leaving(git: Git) -> Leaving:
    """Return the settings of the clone. Raises ConfigError."""
    said = git.run("config", "--local", "--get-regexp", rf"^{_SECTION}", check=False).stdout
    lines = (line.partition(" ") for line in said.decode("utf-8", "replace").splitlines())
    found = {name: value for name, _, value in lines}
    most = found.get(_MOST.lower(), str(MOST_MEGABYTES))
    if not most.isdecimal():
        raise ConfigError(
            f"{_MOST} must be a number of megabytes, not {most!r}.",
            f"Type: {typed.git('config', _MOST, 100)}",
        )
    return Leaving(
        found.get(_WORK.lower(), ""),
        found.get(_TARGET.lower(), ""),
        found.get(_SNAPSHOTS.lower()) != "false",
        int(most),
        BRANCHES if found.get(_REFS.lower()) == "branches" else REFS,
    )


def save_leaving(git: Git, wanted: Leaving) -> None:
    """Write what differs from the default into the clone's settings. Raises UsageError: no such remote."""
    remotes = git.text("remote").split()
    for name in filter(None, (wanted.work, wanted.target)):
        if name not in remotes:
            there = ", ".join(remotes) or "none"
            raise UsageError(
                f"There is no remote called {name}; there are: {there}.",
                f"Add it first: {typed.git('remote', 'add', name, rest='URL')}",
            )
    values = {
        _WORK: wanted.work,
        _TARGET: wanted.target,
        _SNAPSHOTS: "" if wanted.snapshots else "false",
        _MOST: "" if wanted.most == MOST_MEGABYTES else str(wanted.most),
        _REFS: "branches" if wanted.refs == BRANCHES else "",
    }
    for name, value in values.items():
        # Without a value there may be nothing to remove.
        git.run("config", "--local", *((name, value) if value else ("--unset-all", name)), check=False)
