"""What docs/unattended.md says of what a run works among: hooks, signatures, submodules, directories."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put, sh

HOOKS = ("pre-commit", "commit-msg", "post-commit", "post-checkout", "reference-transaction", "post-merge")


def test_a_run_commits_without_hooks_and_plugins_of_an_agents(workshop: Workshop, tmp_path: Path) -> None:
    """What it writes of those is kept for the user."""
    mine = put(workshop.top / ".harness" / "tools" / "mine", "old\n")
    sh(workshop.top, "add", str(mine))
    sh(workshop.top, "commit", "-q", "-m", "A plugin of ours")
    trace = tmp_path / "trace"
    for hook in HOOKS:
        file = workshop.top / ".git" / "hooks" / hook
        put(file, f"#!/bin/sh\necho {hook} >> {trace}\nexit 1\n", executable=True)
    sh(workshop.top, "config", "commit.gpgSign", "true")
    sh(workshop.top, "config", "gpg.program", "false")
    plugins = "write .harness/tools/mine done\nwrite .harness/tools/theirs done"
    workshop.add("Make one", "grep -q done one", do=f"write one done\n{plugins}")

    said = workshop.ends(0)

    assert not trace.exists()
    assert "gpgsig" not in sh(workshop.top, "cat-file", "commit", "main")
    assert sh(workshop.top, "show", "--format=", "--name-only", "main").split() == ["one"]
    assert mine.read_text() == "old\n"
    assert not mine.with_name("theirs").exists()
    (kept,) = sh(workshop.top, "for-each-ref", "--format=%(refname)", "refs/harness/rescue").splitlines()
    assert f"harness rescue show {kept.removeprefix('refs/harness/rescue/')}" in said.stdout + said.stderr
    assert sh(workshop.top, "show", f"{kept}:.harness/tools/theirs") == "done"
    workshop.done_is_done()


@pytest.mark.release
def test_no_run_verb_or_hook_pushes(workshop: Workshop, tmp_path: Path) -> None:
    """Commits are harness's; where its commits go is the user's decision, however well a remote is set up."""
    words = tmp_path / "words"
    programs = recording(tmp_path / "programs", words)
    # One process owns the session of all verbs.
    mine = {"PATH": programs, "CLAUDE_PID": str(os.getpid())}
    remote = with_remote(workshop.top, tmp_path / "remote.git")
    before = sh(remote, "for-each-ref")
    workshop.file_task("one")
    workshop.add("Never", "false", "--max-attempts", "1", do="write f x")

    workshop.ends(9, "-j", "2", PATH=programs)

    workshop.ok("retry", "task-002")
    for verb in ("start", "claim"):
        assert workshop.harness(verb, **mine).returncode == 0
    put(workshop.top / "f", "by hand\n")
    assert workshop.harness("finish", **mine).returncode == 1
    workshop.file_task("three")
    assert workshop.harness("claim", **mine).returncode == 0
    put(workshop.top / "three", "done\n")
    assert workshop.harness("finish", **mine).returncode == 0
    for hook in sorted((CHECKOUT / "hooks").glob("harness-*.py")):
        rung = subprocess.run(
            [sys.executable, "-I", "-S", hook],
            cwd=workshop.top,
            env={**workshop.env, "PATH": programs},
            input=json.dumps({"cwd": str(workshop.top), "session_id": "s"}).encode(),
            check=False,
        )
        assert rung.returncode in (0, 2)

    typed = words.read_text("utf-8").splitlines()
    assert {"commit-tree", "merge-tree"} & {word for line in typed for word in line.split()}
    assert [line for line in typed if not SENDING.isdisjoint(line.split())] == []
    assert sh(remote, "for-each-ref") == before
    assert sh(workshop.top, "rev-list", "--count", "origin/main..main") != "0"


SENDING = {"push", "send-pack", "gh", "glab", "hub"}


def recording(folder: Path, words: Path) -> str:
    """Return a PATH on which each git, and each client of a forge, first notes its arguments in `words`."""
    for name in ("git", "gh", "glab", "hub"):
        real = shutil.which(name) or "true"
        put(folder / name, f'#!/bin/sh\necho {name} "$@" >> {words}\nexec {real} "$@"\n', executable=True)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def with_remote(top: Path, place: Path) -> Path:
    """Give the repository at `top` a remote at `place` that its branch follows and git pushes to."""
    sh(top, "init", "-q", "--bare", "-b", "main", str(place))
    sh(top, "remote", "add", "origin", str(place))
    sh(top, "push", "-q", "-u", "origin", "main")
    sh(top, "config", "push.default", "current")
    return place
