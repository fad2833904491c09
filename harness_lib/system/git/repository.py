"""One repository: a method per question.

Source: docs/design.md, "An attempt"; how git is called is in calls.py.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from harness_lib import typed
from harness_lib.errors import EnvSetupError, NoRepositoryError
from harness_lib.system import fs
from harness_lib.system.git import calls
from harness_lib.system.git.calls import STDERR_TAIL, call, decode, descriptors, failure

NOTHING: Mapping[str, str] = MappingProxyType({})

# Git's message if it finds no work tree.
NO_WORK_TREE = b"must be run in a work tree"
# Git's messages without an identity, in all versions since 2.25.
NO_IDENTITY = (b"Please tell me who you are", b"empty ident name", b"auto-detect", b"no email was given")
# The identity of commits if git has none, and such commits of this process.
NOBODY = "harness@localhost"
by_nobody: set[str] = set()
HEADS = "refs/heads/"
# Refs that all work trees of a repository have in common, each in a file unless git has packed it.
_IN_FILES = (HEADS, "refs/remotes/", "refs/harness/")
# The content of HEAD if the refs are not in files.
ELSEWHERE = "refs/heads/.invalid"
OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
CHECKSUM = 20
# What this process knows of the repository with this common directory: its commits, the parents of those that
# it has made, and the trees of objects.
_commits: set[tuple[Path, str]] = set()
_parents: dict[tuple[Path, str], tuple[str, ...]] = {}
_trees: dict[tuple[Path, str], str] = {}


class Git(NamedTuple):
    """One work tree; `git_dir` is its own, `common_dir` is shared with its linked worktrees."""

    top: Path
    git_dir: Path
    common_dir: Path

    @classmethod
    def open(cls, path: Path) -> Git:
        """Return the work tree around `path`. Raises EnvSetupError if there is none that git may use."""
        questions = ("--show-toplevel", "--absolute-git-dir", "--git-common-dir")
        # The last two have no answer before the first commit.
        result = call(("rev-parse", *questions, "--revs-only", "HEAD", "HEAD^{tree}"), path)
        if result.returncode:
            # Perhaps only the commit of HEAD cannot be read.
            result = call(("rev-parse", *questions), path)
        if result.returncode:
            denied = _denied(path) if NO_WORK_TREE in result.stderr else None
            if not denied:
                raise _not_usable(path, result.stderr)
            return denied
        answers = os.fsdecode(result.stdout).split("\n")[:-1]
        tip = answers[-2:] if all(map(OID.fullmatch, answers[-2:])) else []
        answers = answers[: len(answers) - len(tip)]
        if len(answers) != len(questions):
            # A directory name has a line break: asked one by one, the answers are unambiguous.
            answers = [os.fsdecode(call(("rev-parse", q), path).stdout)[:-1] for q in questions]
        top, git_dir, common = answers
        git = cls(Path(top), Path(git_dir), Path(os.path.realpath(path / common)))
        if tip:
            _commits.add((git.common_dir, tip[0]))
            _trees[git.common_dir, tip[0]] = tip[1]
        return git

    @classmethod
    def init(cls, path: Path) -> Git:
        """Make `path` a repository with a first, empty commit, unless it has one already."""
        result = call(("init", "--quiet"), path)
        if result.returncode:
            raise failure(("init", "--quiet"), result.returncode, result.stderr)
        git = cls.open(path)
        if git.head() is None:
            first = git.commit(git.empty_tree(), (), "Begin")
            git.run("update-ref", "-m", "harness: begin", "HEAD", first, "")
        return git

    def run(
        self,
        *args: str,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        check: bool = True,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run git at the top, with `env` added to the clean one; GitError on failure if `check`."""
        fds = descriptors(self.git_dir)
        told = (*calls.cache_settings(args, self.top, self.git_dir, self.common_dir), *args)
        # Where case makes another name, whatever the settings say: they may have come with a copy from a Mac.
        # By them git would take a new `A` for the tracked `a`, and add neither.
        if os.path.lexists(self.top / ".git") and not os.path.lexists(self.top / ".GIT"):
            told = ("-c", "core.ignoreCase=false", *told)
        # Named, as `.git` at the top may be another one by now, or an agent have set core.bare.
        place = {"GIT_DIR": str(self.git_dir), "GIT_WORK_TREE": str(self.top)}
        result = call(told, self.top, env={**place, **(env or {})}, stdin=stdin, fds=fds)
        if check and result.returncode:
            raise failure(args, result.returncode, result.stderr)
        return result

    def text(self, *args: str) -> str:
        """Return what git prints, stripped."""
        return os.fsdecode(self.run(*args).stdout).strip()

    def lines(self, *args: str, check: bool = True) -> list[str]:
        """Return the lines that git prints; `check` as in `run`."""
        # Unlike with str.splitlines(), a form feed for example ends none.
        return os.fsdecode(self.run(*args, check=check).stdout).split("\n")[:-1]

    def settings(self) -> list[tuple[str, str]]:
        """Return key and value of each setting that holds here; the last one of a key counts."""
        records = (record.partition("\n") for record in decode(self.run("config", "--list", "-z").stdout))
        # A key without a value is true.
        return [(key, value if line_end else "true") for key, line_end, value in records]

    def _answer(self, *args: str) -> str | None:
        """Return what git prints, or None if it fails."""
        result = self.run(*args, check=False)
        return None if result.returncode else os.fsdecode(result.stdout).strip()

    def head(self) -> str | None:
        """Return the commit of HEAD; None before the first commit."""
        return self.ref("HEAD")

    def branch(self) -> str | None:
        """Return the full name of HEAD's branch, born or not; None when detached."""
        name = _content(self.git_dir / "HEAD").removeprefix("ref: ")
        if OID.fullmatch(name):
            return None
        is_told = name.startswith(HEADS) and name != ELSEWHERE
        return name if is_told else self._answer("symbolic-ref", "--quiet", "HEAD")

    def exists(self, oid: str) -> bool:
        """Return whether `oid` is an existing commit."""
        return self.commit_called(oid) is not None

    def commit_called(self, name: str | None) -> str | None:
        """Return the full id of the commit called `name`; None if there is none, or no name."""
        if name is None or (self.common_dir, name) in _commits:
            return name
        oid = self._answer("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        if oid == name:
            _commits.add((self.common_dir, name))
        return oid

    def object_exists(self, name: str) -> bool:
        """Return whether an object of any type exists that is called `name`: an id, or `TREE:PATH`."""
        return self.run("cat-file", "-e", name, check=False).returncode == 0

    def is_ancestor(self, ancestor: str, descendant: str) -> bool:
        """Return whether `descendant` is `ancestor` or has it in its history."""
        if ancestor in (descendant, *_parents.get((self.common_dir, descendant), ())):
            return True
        return self.run("merge-base", "--is-ancestor", ancestor, descendant, check=False).returncode == 0

    def parent(self, commit: str) -> str | None:
        """Return the first parent of `commit`; None if it has none."""
        known = _parents.get((self.common_dir, commit))
        return known[0] if known else self.ref(f"{commit}^")

    def known_tree(self, oid: str) -> str:
        """Return the tree of a commit that this process knows; any other `oid` as it is."""
        return _trees.get((self.common_dir, oid), oid)

    def tree_of(self, commit: str) -> str:
        """Return the tree of a commit (of a tree: itself)."""
        oid = (self.head() or commit) if commit == "HEAD" else commit
        known = _trees.get((self.common_dir, oid))
        if known is not None:
            return known
        tree = self.text("rev-parse", "--verify", "--quiet", f"{oid}^{{tree}}")
        if OID.fullmatch(oid):
            _trees[self.common_dir, oid] = tree
            if oid == self.head():
                _commits.add((self.common_dir, oid))
        return tree

    def empty_tree(self) -> str:
        """Return the tree without entries, in this repository's hash."""
        known = _trees.get((self.common_dir, ""))
        if known is None:
            known = _trees[self.common_dir, ""] = self.text("hash-object", "-t", "tree", "-w", "--stdin")
        return known

    def recent(self, count: int) -> list[str]:
        """Return the last `count` commits, one line each; none before the first."""
        args = ("log", "--oneline", "--no-decorate", "--encoding=UTF-8", f"--max-count={count}")
        return self.lines(*args, check=False)

    def message(self, commit: str) -> str:
        """Return the whole message of `commit`."""
        return self.text("log", "-1", "--encoding=UTF-8", "--format=%B", commit, "--")

    def is_tracked(self, *paths: Path) -> bool:
        """Return whether the index has one of `paths` (absolute, or from the top), or anything below it."""
        names = [str(path) for path in paths]
        result = self.run("--literal-pathspecs", "ls-files", "-z", "--", *names, check=False)
        return result.returncode == 0 and bool(result.stdout)

    def ref(self, name: str) -> str | None:
        """Return the object of the ref called `name`; None if it does not exist."""
        whole = (_content(self.git_dir / name) if name == "HEAD" else name).removeprefix("ref: ")
        if name == "HEAD" and OID.fullmatch(whole):
            return whole
        if whole.startswith(_IN_FILES) and ".." not in whole:
            # A run asks this dozens of times for each task: reading the file needs no process.
            told = _content(self.common_dir / whole)
            if OID.fullmatch(told):
                return told
            if self.is_absent(whole):
                return None
        return self._answer("rev-parse", "--verify", "--quiet", name)

    def is_absent(self, name: str) -> bool:
        """Return whether the ref, or all below a `name` that ends in `/`, certainly does not exist.

        Git packs one before it removes its file.
        """
        files = (self.common_dir / "reftable", self.common_dir / name)
        if any(map(os.path.lexists, files)) or any(char in name for char in "^~:@*?[ "):
            return False
        try:
            packed = (self.common_dir / "packed-refs").read_bytes()
        except FileNotFoundError:
            return True
        except OSError:
            return False
        end = "" if name.endswith("/") else "\n"
        return f" {name}{end}".encode("utf-8", "surrogateescape") not in packed

    def linked(self) -> list[tuple[Path, Path]]:
        """Return the git directory and the path of each linked work tree, also of one that is gone.

        Read from the files of git, as many verbs ask several times; and not by the `.git` of a work tree,
        which may be an agent's.
        """
        owns = fs.matching(self.common_dir / "worktrees", "*")
        named = ((own, _content(own / "gitdir")) for own in owns)
        return [(own, Path(own, pointer).parent) for own, pointer in named if pointer]

    def index_state(self) -> bytes:
        """Return the checksum at the end of the index, which differs with its content."""
        try:
            with (self.git_dir / "index").open("rb") as stream:
                stream.seek(-CHECKSUM, os.SEEK_END)
                end = stream.read(CHECKSUM)
        except FileNotFoundError:
            return b"none"
        # With `index.skipHash` it is zeros, which tell nothing.
        return end if any(end) else os.urandom(CHECKSUM)

    def has_commits(self) -> bool:
        """Return whether any ref or reflog has a commit."""
        return bool(self.run("rev-list", "--all", "--reflog", "--max-count=1", check=False).stdout)

    def refs(self, *prefixes: str) -> list[tuple[str, str]]:
        """Return (name, object) of the refs that are one of `prefixes`, or below one, by name."""
        if prefixes and all(each.endswith("/") and self.is_absent(each) for each in prefixes):
            return []
        lines = self.lines("for-each-ref", "--format=%(refname) %(objectname)", *prefixes)
        return [(name, oid) for name, _, oid in (line.partition(" ") for line in lines)]

    def set_ref(
        self,
        name: str,
        oid: str,
        expected: str | None = None,
        *,
        why: str | None = None,
        only_while: tuple[str, str] | None = None,
    ) -> None:
        """Set the ref `name` to `oid`; with `expected`, only if that is its present value ("": it is new).

        `only_while`: another ref and the value that it must have ("": it must not exist).
        `why` goes into the reflog.
        """
        reason = ("-m", why) if why else ()
        if only_while is None:
            self.run("update-ref", *reason, name, oid, *(() if expected is None else (expected,)))
            return
        other, place = only_while
        change = f"create {name} {oid}" if expected == "" else f"update {name} {oid} {expected or ''}"
        both = f"verify {other} {place}".rstrip() + f"\n{change.rstrip()}\n"
        self.run("update-ref", *reason, "--stdin", stdin=both.encode())

    def delete_ref(self, name: str, expected: str | None = None) -> None:
        """Delete the ref `name`, with `expected` only if that is its value; without, it may be missing."""
        self.run("update-ref", "-d", name, *(() if expected is None else (expected,)))

    def commit(
        self, tree: str, parents: Sequence[str], message: str, env: Mapping[str, str] = NOTHING
    ) -> str:
        """Return a new commit of `tree`; no ref moves, no hook runs, nothing is signed.

        `env` may name its author. A missing identity is filled in for this call.
        """
        lineage = [word for parent in parents for word in ("-p", parent)]
        args = ("commit-tree", "--no-gpg-sign", *lineage, "-F", "-", tree)
        body = message.encode("utf-8", "surrogateescape")
        result = self.run(*args, stdin=body, env=env, check=False)
        if result.returncode and any(words in result.stderr for words in NO_IDENTITY):
            identity = {**self._identity(), **env}
            result = self.run(*args, stdin=body, env=identity, check=False)
            if identity["GIT_AUTHOR_EMAIL"] == NOBODY:
                by_nobody.add(os.fsdecode(result.stdout).strip())
        if result.returncode:
            raise failure(args, result.returncode, result.stderr)
        oid = os.fsdecode(result.stdout).strip()
        _commits.add((self.common_dir, oid))
        _parents[self.common_dir, oid] = tuple(parents)
        _trees[self.common_dir, oid] = tree
        return oid

    def _identity(self) -> dict[str, str]:
        name = self._answer("config", "user.name") or "harness"
        email = self._answer("config", "user.email") or os.environ.get("EMAIL") or NOBODY
        identity = {
            f"GIT_{role}_{part}": value
            for role in ("AUTHOR", "COMMITTER")
            for part, value in (("NAME", name), ("EMAIL", email))
        }
        return {key: os.environ.get(key) or value for key, value in identity.items()}

    def exclude(self, patterns: Sequence[str], sign: Sequence[str] = ()) -> None:
        """Add each of `patterns` once to info/exclude; its other lines stay.

        If all of `sign` are there, the others were taken out on purpose, and nothing is added.
        """
        # A user may have made it a link; a clone cannot bring one.
        path = Path(os.path.realpath(self.common_dir / "info" / "exclude"))
        old = path.read_bytes() if path.exists() else b""
        present = set(old.splitlines())
        new = [line for line in map(os.fsencode, dict.fromkeys(patterns)) if line not in present]
        if not new or (sign and present.issuperset(map(os.fsencode, sign))):
            return
        path.parent.mkdir(exist_ok=True)
        gap = b"" if not old or old.endswith(b"\n") else b"\n"
        fs.write(path, old + gap + b"\n".join(new) + b"\n")


def _content(path: Path) -> str:
    """Return the line in a file of git; "" if it cannot be read."""
    return os.fsdecode(calls.read(path)).rstrip()


def _denied(path: Path) -> Git | None:
    """Return the checkout around `path` that git does not see because core.bare is set."""
    place = Path(os.path.realpath(path))
    for top in (place, *place.parents):
        git_dir = top / ".git"
        if os.path.lexists(git_dir):
            own = Path(os.path.realpath(git_dir))
            has_files = (own / "index").is_file() and own not in (place, *place.parents)
            return Git(top, own, own) if has_files else None
    return None


def _to_files(path: Path) -> str:
    """Return what leads from a git directory, or a bare repository, to files."""
    git_dir = Path(os.fsdecode(call(("rev-parse", "--git-common-dir"), path).stdout[:-1]))
    place = Path(os.path.realpath(path / git_dir))
    if place.name == ".git":
        return f"Go to its files: {typed.change_to(place.parent)}"
    copies = (place.with_name(f"{place.name.removesuffix('.git')}{end}") for end in ("", "-files", "-work"))
    to = next((each for each in copies if not os.path.lexists(each)), "DIRECTORY")
    return f"Work in a clone of it: {typed.git('clone', place, to)}"


def _not_usable(path: Path, stderr: bytes) -> EnvSetupError:
    complaint = os.fsdecode(stderr).strip()
    if "dubious ownership" in complaint or "unsafe repository" in complaint:
        what, _, advice = complaint.partition("\n")
        return EnvSetupError(f"git does not trust the repository at {path}: {what}", advice.strip())
    if NO_WORK_TREE in stderr:
        return EnvSetupError(f"{path} is in a git directory or a bare repository.", _to_files(path))
    _, is_pointed_to, gone = complaint.partition("not a git repository: ")
    if is_pointed_to:
        return EnvSetupError(
            f"The file .git at {path} or above it points to {gone}, which is not there",
            "If the repository was moved, type in its new place: " + typed.git("worktree", "repair", path),
        )
    if "not a git repository" in complaint:
        return NoRepositoryError(f"{path} is not in a git repository.", "Make one: harness init --git")
    return EnvSetupError(
        f"git cannot use the repository at {path}: {complaint[-STDERR_TAIL:]}", "repair it first"
    )
