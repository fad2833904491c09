"""Find the commits of a branch since a commit, which of them are published, and how HEAD moved.

The moves of a ref are in git's own record (git-reflog(1)), which is deleted with the ref, except that of the
HEAD of a checkout. A line is `OLD NEW NAME <MAIL> SECONDS ZONE TAB MESSAGE`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from harness_lib.system.git import calls, trees
from harness_lib.system.git.repository import Git
from harness_lib.system.place import own_files
from harness_lib.text import Strings, cut

NULL = "0"
# The message of earlier versions when they moved HEAD back without the files.
PUT_BACK = "harness: put back"
# The message when finished work is merged into a checkout, with its files.
MERGED = "harness: merge"
# The message of git when it renames a branch that is checked out: `refs/heads/OLD to refs/heads/NEW` follows.
RENAMED = "Branch: renamed "
# And when it goes to another branch: `OLD to NEW` follows.
CHECKED_OUT = "checkout: moving from "
READ_BYTES = 65536
# Longer differences are not read as patches.
MOST_LINES = 200_000


def lost_base(git: Git, base: str) -> bool:
    """Return whether `base` is no longer in the history of HEAD: a reset, an amend, another root."""
    head = git.head()
    return head not in (None, base) and git.exists(base) and not git.is_ancestor(base, head)


def pushed(git: Git, base: str, tip: str) -> str:
    """Return the last published commit between `base` and `tip`: a branch must not go back before it.

    A remote-tracking branch has it, or it merges what one has; `base` if there is none.
    """
    if tip == base or not git.is_ancestor(base, tip):
        return base
    ours = set(git.lines("rev-list", tip, "--not", base, "--remotes"))
    for line in git.lines("rev-list", "--first-parent", "--parents", tip, f"^{base}"):
        commit, *parents = line.split(" ")
        if commit not in ours:
            return commit
        if not parents or not git.is_ancestor(base, parents[0]):
            # The base was merged into another history.
            return commit if _brings(git, commit, base, ours) else base
        if any(_brings(git, other, base, ours, parents[0]) for other in parents[1:]):
            return commit
    return base


def _brings(git: Git, merged: str, base: str, ours: set[str], *known: str) -> bool:
    """Return whether `merged` has a published commit that neither `base` nor `known` have."""
    return any(oid not in ours for oid in git.lines("rev-list", merged, "--not", base, *known))


def since(git: Git, base: str, head: str) -> list[str]:
    """Return the commits of `head` that `base` lacks, newest first: short name and subject."""
    if base == head or not (git.exists(base) and git.exists(head)):
        return []
    return git.lines("log", "--encoding=UTF-8", "--format=%h %s", f"{base}..{head}")


class Commit(NamedTuple):
    """One commit and its whole message."""

    oid: str
    message: str

    def names(self, word: str) -> bool:
        """Return whether the message has `word`, not as a part of a longer one."""
        return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", self.message) is not None


def commits(git: Git, *revisions: str) -> tuple[Commit, ...]:
    """Return the commits of `revisions`, newest first; none if one of these does not exist."""
    options = ("-z", "--encoding=UTF-8", "--format=%H%x00%B")
    answer = git.run("log", *options, *revisions, "--", check=False)
    if answer.returncode:
        return ()
    parts = os.fsdecode(answer.stdout).split("\0")
    return tuple(Commit(oid, body.strip()) for oid, body in zip(parts[::2], parts[1::2], strict=False))


def with_files(git: Git, tip: str, most: int = 10_000) -> list[tuple[str, Strings]]:
    """Return the last `most` commits of a branch, newest first, each with the files that it changed."""
    args = ("log", "--first-parent", "-m", f"--max-count={most}", "--no-renames", "--name-only", "-z")
    found: list[tuple[str, list[str]]] = []
    begins = False
    for part in os.fsdecode(git.run(*args, "--format=%x00%x00%H", tip).stdout).split("\0"):
        if part and begins:
            found.append((part, []))
        elif part.strip("\n"):
            found[-1][1].append(part.removeprefix("\n"))
        begins = not part
    return [(oid, tuple(files)) for oid, files in found]


def added(git: Git, base: str, head: str) -> set[str]:
    """Return the files that commits of `head` add which neither `base` nor a remote-tracking branch has."""
    if base == head or not (git.exists(base) and git.exists(head)):
        return set()
    listing = ("log", "-z", "--format=", "--name-only", "--no-renames", "--diff-filter=A")
    return set(calls.decode(git.run(*listing, head, "--not", base, "--remotes").stdout))


def without(
    git: Git, base: str, head: str, paths: Sequence[str], own: Sequence[str], users: Sequence[str]
) -> str:
    """Return `head` without the files or directories `paths` in each commit since `base`, which lacks them.

    Those of them that are in `own` stay as the base has them. `head` itself if no commit changes any.
    Commits that are published, or that the options `users` of git-rev-list(1) name, are not changed; a commit
    of nothing else is left out.
    """
    if base == head or not (paths and git.exists(base) and git.is_ancestor(base, head)):
        return head
    since = ("rev-list", head, "--not", base, "--remotes", *users)
    if not git.lines("--literal-pathspecs", *since, "--full-history", "--", *paths):
        return head
    known = set(trees.entries(git, base))
    new = (path for path in paths if path not in own)
    names = [path for path in new if not any(f"{name}/".startswith(f"{path}/") for name in known)]
    rewritten: dict[str, str] = {}
    for oid in git.lines(*since, "--topo-order", "--reverse"):
        rewritten[oid] = _rewritten(git, oid, rewritten, names, own)
    return rewritten.get(head, head)


def _rewritten(
    git: Git, oid: str, rewritten: Mapping[str, str], names: Sequence[str], own: Sequence[str]
) -> str:
    """Return the commit `oid` on the rewritten parents, without `names` and with `own` as those have it."""
    head, gap, message = git.run("cat-file", "commit", oid).stdout.partition(b"\n\n")
    old = git.tree_of(oid)
    parents = git.text("rev-list", "--parents", "-1", oid).split(" ")[1:]
    after = [rewritten.get(parent, parent) for parent in parents]
    tree = _as_before(git, trees.without(git, old, names), after, own)
    if tree == old and after == parents:
        return oid
    if len(after) == 1 and tree != old and tree == git.tree_of(after[0]):
        return after[0]
    # Author and dates stay; a signature would be invalid.
    rest = re.sub(rb"\ngpgsig(-sha256)? .*(\n .*)*", b"", head).split(b"\n")
    kept = [line for line in rest if not line.startswith((b"tree ", b"parent "))]
    lines = [f"tree {tree}".encode(), *(f"parent {parent}".encode() for parent in after), *kept]
    content = b"\n".join(lines) + gap + message
    return os.fsdecode(git.run("hash-object", "-t", "commit", "-w", "--stdin", stdin=content).stdout).strip()


def _as_before(git: Git, tree: str, parents: Sequence[str], own: Sequence[str]) -> str:
    """Return `tree` with each file of `own` as one of `parents` has it: the first, if it is like none."""
    now = trees.entries(git, tree)
    before = [trees.entries(git, parent) for parent in parents] or [{}]
    edits = {
        path: before[0].get(path)
        for path in {*now, *before[0]}
        if calls.covers(own, path) and all(now.get(path) != each.get(path) for each in before)
    }
    return trees.edited(git, tree, edits) if edits else tree


class Step(NamedTuple):
    """A move of HEAD from one commit to another ("" if it had none), and its message."""

    old: str
    new: str
    why: str


def last_of_checkout(git: Git, branch: str) -> str | None:
    """Return the last commit of `branch` by the record of this work tree, if it is checked out here."""
    if git.branch() != branch:
        return None
    return next((place for step in _steps(git) for place in (step.new, step.old) if place), None)


def present_name(git: Git, branch: str) -> str:
    """Return the name of HEAD's branch if that is `branch` renamed, by the record of this work tree.

    `branch` itself if it still exists, went in another way, or was checked out after it was renamed: then it
    was made anew, and HEAD's branch is an older one.
    """
    here = git.branch()
    if here in (None, branch) or git.ref(branch):
        return branch
    name, gone_to = here, f" to {branch.removeprefix('refs/heads/')}"
    for step in _steps(git):
        if step.why.startswith(CHECKED_OUT) and step.why.endswith(gone_to):
            return branch
        old, _, new = step.why.removeprefix(RENAMED).partition(" to ")
        if new == name:
            name = old
        if name == branch:
            return here
    return branch


def was_renamed(git: Git, old: str, new: str) -> bool:
    """Return whether the branch `new` was once renamed from `old`, by its own record."""
    why = git.lines("log", "--walk-reflogs", "--format=%gs", new, "--", check=False)
    return any(each.startswith(f"{RENAMED}{old} to ") for each in why)


def stood_last(git: Git) -> str | None:
    """Return the commit of the files of this work tree, by the record of its HEAD."""
    return next((step.new for step in _steps(git) if step.new and step.why != PUT_BACK), None)


def merged(git: Git) -> list[Step]:
    """Return the moves of this work tree's HEAD that merged finished work, newest first."""
    return [step for step in _steps(git) if step.why == MERGED]


def _steps(git: Git) -> Iterator[Step]:
    """Yield the last moves of this work tree's HEAD, the newest first."""
    try:
        data = own_files.tail(git.git_dir / "logs" / "HEAD", READ_BYTES)
    except OSError:
        return
    lines = data.splitlines()
    # Of a longer record the first line began before.
    for line in reversed(lines if len(data) < READ_BYTES else lines[1:]):
        facts, _, why = line.decode("utf-8", "replace").partition("\t")
        old, _, rest = facts.partition(" ")
        new = rest.partition(" ")[0]
        yield Step(old.strip(NULL) and old, new.strip(NULL) and new, why)


class Size(NamedTuple):
    """How many files and lines a commit, or a range of commits, changes."""

    files: int
    added: int
    removed: int


_SIZE = re.compile(r"(\d+) files? changed(?:, (\d+) insertions?\(\+\))?(?:, (\d+) deletions?\(-\))?")


def sizes(git: Git, base: str, tip: str, most: int = 10_000) -> dict[str, Size]:
    """Return the last `most` commits of `tip` that `base` lacks, newest first, each with its size."""
    args = ("log", f"--max-count={most}", "--no-renames", "--shortstat", "--format=%x00%H")
    parts = git.run(*args, f"{base}..{tip}").stdout.decode("ascii", "replace").split("\0")
    return {part[: part.find("\n")]: _size(part) for part in parts if part}


def size_between(git: Git, base: str, tip: str) -> Size:
    """Return how many files and lines differ between two commits."""
    return _size(git.run("diff", "--no-ext-diff", "--no-renames", "--shortstat", base, tip).stdout.decode())


def _size(text: str) -> Size:
    match = _SIZE.search(text)
    return Size(*(int(each or 0) for each in match.groups())) if match else Size(0, 0, 0)


def patches(git: Git, base: str, tip: str, longest: int) -> dict[str, str]:
    """Return the difference of each commit of `tip` that `base` lacks, cut to `longest` characters.

    If they change more than MOST_LINES in all, only the names of files and their numbers of lines.
    """
    size = size_between(git, base, tip)
    form = "--patch" if size.added + size.removed <= MOST_LINES else "--stat"
    args = ("log", "--max-count=2000", "--no-color", "--no-ext-diff", "--no-textconv", form)
    parts = git.run(*args, "--format=%x00%H", f"{base}..{tip}").stdout.decode("utf-8", "replace").split("\0")
    found = (part.partition("\n") for part in parts if part)
    return {oid: cut(text.strip("\n"), longest) for oid, _, text in found}
