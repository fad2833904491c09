"""A full disk is no defect of the repository, though few messages of git name it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_lib.errors import AwayError
from harness_lib.system.git import calls
from harness_lib.system.git.calls import GitError
from harness_lib.system.git.repository import Git
from tests.full_disk import fill, small_disk
from tests.system.git.gitrepo import put, sh

# As git 2.39 says it.
SAID = (
    "error: unable to write file f2\nfatal: Could not reset index file to revision 'HEAD'.",
    "fatal: sha1 file '/r/.git/index.lock' write error. Out of diskspace",
    "error: failed to write new configuration file /r/.git/config.lock",
    "fatal: cannot update ref 'refs/a/b': couldn't write '/r/.git/refs/a/b.lock'",
    "error: unable to write symref for refs/heads/q: No space left on device",
)


@pytest.mark.parametrize("line", SAID)
def test_what_git_says_of_a_full_disk_may_end_by_itself(line: str) -> None:
    error = calls.failure(["checkout"], 128, line.encode())

    assert isinstance(error, AwayError)
    assert "room on the disk" in str(error.hint)


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Git]:
    """Give a repository on a disk of its own that has no room left."""
    disk = tmp_path / "disk"
    with small_disk(disk):
        top = disk / "repo"
        sh(tmp_path, "init", "-q", str(top))
        for name in ("f1", "f2", "f3"):
            put(top / name, os.urandom(30_000))
        sh(top, "add", ".")
        sh(top, "commit", "-qm", "begin")
        fill(disk)
        yield Git.open(top)


@pytest.mark.parametrize(
    "command",
    [
        "worktree add --detach ../another",
        "checkout-index --all --prefix=copy/",
        "read-tree --reset HEAD",
        "config harness.a b",
        "update-ref refs/harness/a HEAD",
        "symbolic-ref refs/heads/a refs/heads/b",
        "commit-tree -m more HEAD^{tree}",
        "pack-refs --all",
        "repack -adq",
    ],
)
def test_a_command_that_finds_the_disk_full_may_be_tried_again(full: Git, command: str) -> None:
    def again_and_again() -> None:
        while True:
            # A small file may find the rest of a page.
            full.run(*command.split())
            fill(full.top.parent)

    with pytest.raises(GitError) as caught:
        again_and_again()

    assert isinstance(caught.value, AwayError), caught.value
