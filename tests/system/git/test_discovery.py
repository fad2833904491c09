"""What discovery.py promises: it finds the very repository that git would find, or leaves it to git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from harness_lib.system.git import discovery
from harness_lib.system.git.calls import call
from harness_lib.system.git.repository import Git
from tests.system.git.gitrepo import World, put

ODD = "a b/süß\nline"
# What is typed in the repository, and from where it is looked for then.
PLAIN = {
    "its top": (":", "."),
    "below": (f"mkdir -p '{ODD}'", ODD),
    "by a link": ('ln -s "$PWD/dir" ../link', "../link"),
    "unborn": ("git init -q ../unborn", "../unborn"),
    "detached": ("git checkout -q --detach", "."),
    "with a remote": ("git remote add origin ssh://somebody@example.invalid:22/~/it.git", "."),
    "described": ("git config branch.main.description 'What it is for'", "."),
    "commented": ("printf '\\n# said\\n; twice\\n' >>.git/config", "."),
    "nested": ("git init -q nested", "nested"),
}
OTHERS = {
    "gone": (":", "gone"),
    "a file": (":", "tracked.txt"),
    "inside": (":", ".git/refs"),
    "the git directory": (":", ".git"),
    "a bare one": ("git init -q --bare bare", "bare"),
    "below a bare one": ("git init -q --bare bare", "bare/objects"),
    "a linked work tree": ("git worktree add -q ../linked", "../linked"),
    "a git directory elsewhere": ('mv .git ../else; ln -s "$PWD/../else" .git', "."),
    "a file that says where": ("mv .git ../else; echo 'gitdir: ../else' >.git", "."),
    "an empty git directory on the way": ("mkdir -p between/.git", "between"),
    "no objects": ("rm -rf .git/objects", "."),
    "no repository": (":", ".."),
    "what all share is elsewhere": ("echo ../../other >.git/commondir", "."),
}
HEADS = (b"", b"ref: nowhere\n", b"\0" * 41, b"ref:refs/heads/main\n")
CONFIGS = (
    *(
        b"[core]\n\tbare = true\n",
        b"[core]\n\tbare\n",
        b"[Core]\n\tBARE = yes\n",
        b'[core]\n\tbare = "true"\n',
    ),
    *(b"[core]\n\tbare = false # not so\n", b"[core]\n\tbare = fal\\\nse\n", b"[core] bare = true\n"),
    *(b"[core]\n\tworktree = ../../other\n", b"[include]\n\tpath = other\n"),
    b'[includeIf "gitdir:/"]\n\tpath = other\n',
    *(b"[core]\n\trepositoryformatversion = 1\n", b"[core]\n\trepositoryformatversion = 99\n"),
    *(b"[extensions]\n\tobjectformat = sha256\n", b"[core\n", b"= torn\n", b"[a]\n\t1b = torn\n", b"\0"),
    *(b'[a "b]\n', b"[core]\n\tfile"),
)


def made(world: World, script: str, place: str) -> Path:
    subprocess.run(["sh", "-ec", script], cwd=world.top, check=True, capture_output=True)
    return world.top / place


def by_git(path: Path) -> tuple[str, ...]:
    questions = ("--show-toplevel", "--absolute-git-dir", "--git-common-dir")
    top, git_dir, common = (os.fsdecode(call(("rev-parse", each), path).stdout)[:-1] for each in questions)
    return top, git_dir, os.path.realpath(path / common)


@pytest.mark.parametrize("layout", PLAIN)
def test_a_plain_repository_is_found_as_git_finds_it(world: World, layout: str) -> None:
    path = made(world, *PLAIN[layout])
    git = Git.open(path)
    assert discovery.find(path) == git.top
    assert tuple(map(str, git)) == by_git(path)


@pytest.mark.parametrize("layout", OTHERS)
def test_any_other_is_left_to_git(world: World, layout: str) -> None:
    assert discovery.find(made(world, *OTHERS[layout])) is None


def test_an_odd_head_and_odd_settings_are_left_to_git(world: World) -> None:
    head, config = (world.top / ".git" / name for name in ("HEAD", "config"))
    whole = {file: file.read_bytes() for file in (head, config)}
    odd = [(head, content) for content in HEADS]
    odd += [(config, whole[config] + added) for added in CONFIGS]
    for file, content in (*odd, (config, b"bare = false\n" + whole[config])):
        put(file, content)
        assert discovery.find(world.top) is None, content
        put(file, whole[file])
        assert discovery.find(world.top) == world.top


def test_one_that_belongs_to_somebody_else_is_left_to_git(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.lstat(world.top).st_uid + 1)
    assert discovery.find(world.top) is None


def test_without_git_that_is_left_to_the_call_that_fails(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(world.top))
    assert discovery.find(world.top) is None
