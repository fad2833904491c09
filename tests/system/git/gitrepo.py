"""Real repositories for the tests of git.py, snapshot.py and restore.py."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness_lib.system.git import locks, restore, snapshot, status, trees
from harness_lib.system.git.repository import Git
from harness_lib.system.git.snapshot import Before
from tests import lasting

LIMIT = 1_000_000
FILES = {"tracked.txt": "one\n", "dir/inner.txt": "inner\n"}

NASTY = (
    " leading and trailing ",
    'quo"te',
    "back\\slash",
    "line\nbreak",
    "carriage\r",
    "-rf",
    ":(top)magic",
    "*glob?[a]",
    "tab\tulator",
    "süß/日本",
    os.fsdecode(b"not-utf8-\xff\xfe"),
)


def sh(path: Path, *args: str, env: Mapping[str, str] | None = None, check: bool = True) -> str:
    """Run git as the user would."""
    done = subprocess.run(
        ["git", *args], cwd=path, env={**os.environ, **(env or {})}, capture_output=True, check=False
    )
    assert not check or done.returncode == 0, (args, done.stderr)
    return os.fsdecode(done.stdout).strip()


def put(path: Path, text: str | bytes, *, executable: bool = False) -> Path:
    """Write a file, with the directories above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    if executable:
        path.chmod(0o755)
    return path


def commit_all(top: Path, message: str, files: Mapping[str, str | bytes] | None = None) -> None:
    """Write `files`, and commit all that is in the work tree."""
    for name, text in (files or {}).items():
        put(top / name, text)
    sh(top, "add", "-A")
    sh(top, "commit", "-q", "-m", message)


def disk(top: Path) -> dict[str, tuple[str, bytes]]:
    """Return every file below `top`, git's own left out: path → (kind, content)."""
    contents: dict[str, tuple[str, bytes]] = {}
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if name != ".git"]
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in [*files, *links]:
            path = Path(folder) / name
            if name == ".git":
                continue
            key = str(path.relative_to(top))
            if path.is_symlink():
                contents[key] = ("link", os.fsencode(os.readlink(path)))  # noqa: PTH115
            else:
                kind = "program" if os.access(path, os.X_OK) and path.stat().st_mode & 0o100 else "file"
                contents[key] = (kind, path.read_bytes())
    return contents


@functools.cache
def _template(*files: tuple[str, str]) -> Path:
    """Return a repository with one commit of `files`, to be copied: that takes a fifth of making it."""
    top = lasting.directory()
    sh(top, "init", "-q", "-b", "main")
    commit_all(top, "Begin", dict(files))
    return top


class Checkout:
    """A work tree at `top`: files are put and read there by their names, and git is typed there."""

    top: Path

    def sh(self, *args: str, env: Mapping[str, str] | None = None, check: bool = True) -> str:
        return sh(self.top, *args, env=env, check=check)

    def put(self, name: str, text: str | bytes = "x\n", *, executable: bool = False) -> Path:
        return put(self.top / name, text, executable=executable)

    def read(self, name: str) -> str:
        return (self.top / name).read_text()

    def commits(self, message: str = "work", files: Mapping[str, str | bytes] | None = None) -> str:
        """Write `files`, commit everything, and return the commit."""
        commit_all(self.top, message, files)
        return self.sh("rev-parse", "HEAD")


@dataclass
class World(Checkout):
    """A repository with one commit, and what an attempt needs to be taken back."""

    top: Path
    git: Git
    base: str
    branch: str | None = "refs/heads/main"
    before: Before | None = None
    excluded_paths: tuple[str, ...] = ()

    @classmethod
    def make(cls, top: Path, files: Mapping[str, str] | None = None) -> World:
        shutil.copytree(_template(*(files or FILES).items()), top, dirs_exist_ok=True)
        # The copies have numbers and times of their own, by which git knows files as unchanged.
        sh(top, "update-index", "-q", "--refresh")
        git = Git.open(top)
        return cls(top, git, str(git.head()))

    def commit(self, message: str = "work", *, files: Mapping[str, str | bytes] | None = None) -> str:
        """Write `files`, commit everything, and take the new commit as the base."""
        for name, text in (files or {}).items():
            self.put(name, text)
        self.sh("add", "-A")
        self.sh("commit", "-q", "--allow-empty", "-m", message)
        self.base = self.sh("rev-parse", "HEAD")
        return self.base

    def linked(self) -> World:
        """Return a linked work tree beside this one, on a branch called side."""
        place = self.top.parent / "linked"
        self.sh("worktree", "add", "-q", "-b", "side", str(place))
        return World(place, Git.open(place), self.base)

    def begin(self) -> None:
        """Remember the base, and what is untracked now."""
        self.base = self.sh("rev-parse", "HEAD")
        self.branch = self.git.branch()
        untracked = status.changes(self.git, self.excluded_paths).untracked
        left_out = status.left_out(self.git)
        self.before = snapshot.capture_untracked(self.git, untracked, LIMIT, LIMIT, left_out)

    def go_back(self) -> list[str]:
        made = snapshot.capture(self.git, self.excluded_paths, base=self.base, before=self.before)
        return self.go_back_from(made)

    def go_back_from(self, made: str) -> list[str]:
        with locks.hold(self.git):
            return restore.go_back(
                self.git,
                self.base,
                branch=self.branch,
                made=made,
                before=self.before,
                excluded_paths=self.excluded_paths,
            )

    def status(self) -> str:
        return self.sh("status", "--porcelain")


def conflict(world: World) -> None:
    """Let the branches main and theirs disagree about a line, and be on main."""
    world.sh("checkout", "-q", "-b", "theirs")
    world.commit("theirs", files={"tracked.txt": "theirs\n"})
    world.sh("checkout", "-q", "main")
    world.commit("ours", files={"tracked.txt": "ours\n"})


def commit_ahead(world: World) -> str:
    """Return a commit on the base that adds, changes, and removes, while HEAD stays at the base."""
    world.put("new/file", "new\n")
    world.put("tracked.txt", "changed\n")
    world.put("script", "#!/bin/sh\n", executable=True)
    (world.top / "dir/inner.txt").unlink()
    ahead = world.commits("ahead")
    world.sh("reset", "-q", "--hard", world.base)
    return ahead


def stands_at_base(world: World) -> None:
    """Find the repository as it was before the attempt."""
    assert world.git.head() == world.base
    assert world.git.branch() == world.branch
    assert status.changes(world.git, world.excluded_paths).tracked == ()
    assert world.sh("diff", "--cached", "--name-only", world.base) == ""
    assert not list(world.git.git_dir.glob("harness-scratch*"))
    assert locks.leftover_locks(world.git) == []


def content(git: Git, tree: str) -> dict[str, tuple[str, bytes]]:
    """Return what stands in a tree, by path: the kind of each entry, and its bytes."""
    kinds = {"100644": "file", "100755": "program", "120000": "link"}
    return {
        path: (kinds[mode], git.run("cat-file", "blob", oid).stdout)
        for path, (mode, oid) in trees.entries(git, tree).items()
        if mode in kinds
    }
