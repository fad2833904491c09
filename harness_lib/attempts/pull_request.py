"""Open a pull request by the command of its host, keep what was pushed for it, and find its work elsewhere.

Source: docs/unattended.md, "Where finished work goes".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from harness_lib import typed
from harness_lib.attempts import target_branch
from harness_lib.core import project, quoting
from harness_lib.core.context import Context, Merging
from harness_lib.errors import EnvSetupError
from harness_lib.system.git import calls, merge
from harness_lib.system.git.repository import Git
from harness_lib.system.processes import environment
from harness_lib.task import Task

PROPOSALS = "refs/harness/pull/"
OWN = "harness/"
AGAIN = (
    "Nothing was forced; harness tries again at the next merge, at the end, and in the next run with --merge."
)
TOOLS = {
    "gh": ("gh pr create --head={branch} --base={base} --title={title} --body={body}", "gh pr view {branch}"),
    "glab": (
        (
            "glab mr create --yes --source-branch={branch} --target-branch={base} --title={title} "
            "--description={body}"
        ),
        "glab mr view {branch}",
    ),
}
ADDRESS = re.compile(r"https?://\S+")
# How many commits of the remote branch are looked at for work that later ones have changed.
LOOKED_AT = 200


class Proposal(NamedTuple):
    """The branch of a pull request, the commit that was pushed to it, and its address.

    `address` None: not opened yet; "": the command has not said where.
    """

    branch: str
    pushed: str = ""
    address: str | None = None


def tool(ctx: Context, remote: str) -> str:
    """Return the program that opens pull requests at `remote`. Raises EnvSetupError."""
    url = ctx.git.text("remote", "get-url", remote)
    names = sorted(TOOLS, key=lambda name: ("gitlab" in url) is not (name == "glab"))
    path = ctx.env.get("PATH")
    name = next((each for each in names if environment.find(each, path)), None)
    if name is None:
        raise EnvSetupError(
            f"Nothing here can open a pull request: neither {' nor '.join(TOOLS)} is on the PATH.",
            "Install one of them, or name a command of your own: harness run --help (--merge-command)",
        )
    return name


class Opened(NamedTuple):
    """Where a pull request is, or why there is none."""

    address: str = ""
    trouble: str = ""


def opened(ctx: Context, merging: Merging, branch: str, tasks: Sequence[Task]) -> Opened:
    """Open a pull request for `branch`, or find the one that a killed run has opened."""
    title = tasks[0].title if len(tasks) == 1 else f"{tasks[0].title}, and {len(tasks) - 1} more"
    lines = [f"- {task.id} {task.title}: `{task.validation.command}` passes" for task in tasks]
    lines += [f"- Look at: {sentence}" for task in tasks for sentence in task.look_at]
    named = {
        "branch": branch,
        "base": target_branch.short(merging.branch),
        "title": quoting.one_line(title, quoting.REASON_LENGTH),
        "body": _fitting(lines),
    }
    variables = {f"HARNESS_{name.upper()}": value for name, value in named.items()}
    words = {name: typed.word(value) for name, value in named.items()}
    commands = [each.format(**words) for each in TOOLS.get(merging.command, ())] or [merging.command]
    refusals = []
    for command in commands:
        done, output = project.call(ctx, command, variables)
        if done:
            addresses = ADDRESS.findall(output)
            return Opened(addresses[-1] if addresses else "")
        refusals.append(target_branch.gist(output))
    return Opened(trouble=f"{branch} has no pull request yet: {refusals[0]}. {AGAIN}")


def _fitting(lines: Sequence[str]) -> str:
    """Return as many of `lines` as a command and a host take, without characters that no argument has."""
    fitting, left = list[str](), quoting.QUOTED_LENGTH
    for line in lines:
        fitting.append(quoting.one_line(line, quoting.LOOK_LENGTH))
        left -= len(fitting[-1])
        if left < 0:
            fitting[-1] = f"- and {len(lines) - len(fitting) + 1} more"
            break
    return "\n".join(fitting)


def ref_of(target: str) -> str:
    """Return the ref that keeps what is known of the pull request of `target`."""
    return PROPOSALS + target_branch.short(target)


def read(git: Git, target: str) -> Proposal | None:
    """Return what is known of the pull request of `target`; None if there is none."""
    name = git.ref(ref_of(target))
    try:
        known = Proposal(**json.loads(git.text("cat-file", "blob", name))) if name else None
    except (calls.GitError, ValueError, TypeError):
        return None
    # Nothing but a branch of harness is ever pushed for a pull request.
    return known if known and known.branch.startswith(OWN) else None


def write(git: Git, target: str, known: Proposal) -> None:
    """Keep what is known of the pull request of `target`."""
    blob = git.run("hash-object", "-w", "--stdin", stdin=json.dumps(known._asdict()).encode()).stdout
    git.set_ref(ref_of(target), blob.decode().strip())


def brought_by(git: Git, tip: str, commit: str, base: str) -> str | None:
    """Return the commit at or before `tip` since which the change to `commit` is there; None if it is not.

    Where the same lines were changed again, nothing can be told; a commit without the change has undone it.
    """
    brought = None
    for at, has in _found_in(git, tip, commit, base):
        if not has:
            break
        brought = at
    return brought


def in_other_commits(git: Git, tip: str, commits: Iterable[str]) -> set[str]:
    """Return those of `commits` whose changes `tip` has in other commits, as after a rebase or a squash."""
    present = {commit for commit in commits if git.exists(commit)}
    arrived: set[str] = set()
    # All that was squashed into one commit is found in the last of them.
    for end in git.text("merge-base", "--independent", *present).split() if present else ():
        base = merge.parted(git, end, tip)
        if base and _has_change(git, tip, end, base):
            arrived.update(git.text("rev-list", end, f"^{base}").split())
    for commit in present - arrived:
        base = git.parent(commit)
        if base and _has_change(git, tip, commit, base):
            arrived.add(commit)
    return arrived


def _has_change(git: Git, tip: str, commit: str, base: str) -> bool:
    return next((has for _, has in _found_in(git, tip, commit, base)), False)


def _found_in(git: Git, tip: str, commit: str, base: str) -> Iterator[tuple[str, bool]]:
    """Yield whether commits have the change to `commit`, from `tip` backwards, where that can be told."""
    since = merge.parted(git, base, tip)
    span = (tip, f"^{since}") if since else (tip,)
    history = git.text("rev-list", "--first-parent", f"--max-count={LOOKED_AT}", *span, "--").split()
    for at in (*history, *((since,) if since else ())):
        found = merge.differing(git, base, git.tree_of(commit), at)
        if not found.conflicts:
            yield at, found.tree == git.tree_of(at)
