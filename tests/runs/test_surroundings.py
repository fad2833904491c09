"""What docs/unattended.md says of what a run works among: hooks, signatures, submodules, directories."""

from __future__ import annotations

from pathlib import Path

from tests.runs.conftest import Make
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put, sh

HOOKS = ("pre-commit", "commit-msg", "post-commit", "post-checkout", "reference-transaction", "post-merge")


def test_commits_of_a_run_are_made_without_hooks_and_without_signatures(
    workshop: Workshop, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    workshop.file_task("one")
    for hook in HOOKS:
        file = workshop.top / ".git" / "hooks" / hook
        put(file, f"#!/bin/sh\necho {hook} >> {trace}\nexit 1\n", executable=True)
    sh(workshop.top, "config", "commit.gpgSign", "true")
    sh(workshop.top, "config", "gpg.program", "false")

    said = workshop.run()

    assert said.returncode == 0, said.stdout + said.stderr
    assert not trace.exists()
    assert "gpgsig" not in sh(workshop.top, "cat-file", "commit", "main")
    workshop.done_is_done()


def test_submodules_are_there_if_the_init_script_checks_them_out(workshop: Workshop, tmp_path: Path) -> None:
    library = tmp_path / "library"
    sh(tmp_path, "init", "-q", "-b", "main", str(library))
    put(library / "tool", "of the library\n")
    sh(library, "add", "-A")
    sh(library, "commit", "-q", "-m", "Begin")
    allow = ("-c", "protocol.file.allow=always")
    sh(workshop.top, *allow, "submodule", "--quiet", "add", str(library), "lib")
    sh(workshop.top, "commit", "-q", "-m", "With a library")
    workshop.add("Without it", "test ! -e lib/tool && test -f one", do="write one done")
    assert workshop.run("--no-final-check").returncode == 0

    put(workshop.top / "harness-init.sh", f"git {' '.join(allow)} submodule --quiet update --init\n")
    workshop.add("With it", "test -f lib/tool && test -f two", do="write two done")
    said = workshop.run("--no-final-check")

    assert said.returncode == 0, said.stdout + said.stderr
    assert (workshop.top / "lib" / "tool").read_text() == "of the library\n"
    assert len(sh(workshop.top, "worktree", "list").splitlines()) == 1


def test_everything_runs_at_the_top_of_the_repository_unless_a_check_says_otherwise(
    tmp_path: Path, make_workshop: Make
) -> None:
    """Also where the list lies below it: the files of the work are seen from there."""
    above = make_workshop().top
    inside = Workshop(above / "pa", tmp_path / "home")
    put(inside.top / "README.md", "inside\n")
    sh(above, "add", "-A")
    sh(above, "commit", "-q", "-m", "A project inside")
    inside.ok("init", ".")
    trace = tmp_path / "trace"
    at_the_top = "test -f .gitignore && test -d pa"
    put(inside.top / "harness-init.sh", f"{at_the_top} && echo init >> {trace}\n")
    inside.add("Above", f"{at_the_top} && test -f pa/f", do="write pa/f done")
    inside.add("Below", "test ! -e .gitignore && test -f g", "--cwd", "pa", do="write pa/g done")

    said = inside.run()

    assert said.returncode == 0, said.stdout + said.stderr
    assert set(trace.read_text().split()) == {"init"}


def test_plugins_that_an_agent_writes_are_committed_by_nobody_and_kept_for_you(workshop: Workshop) -> None:
    mine = workshop.top / ".harness" / "tools" / "mine"
    put(mine, "old\n")
    sh(workshop.top, "add", str(mine))
    sh(workshop.top, "commit", "-q", "-m", "A plugin of ours")
    plugins = "write .harness/tools/mine done\nwrite .harness/tools/theirs done"
    workshop.add("Make one", "grep -q done one", do=f"write one done\n{plugins}")

    said = workshop.run()

    assert said.returncode == 0, said.stdout + said.stderr
    assert sh(workshop.top, "show", "--format=", "--name-only", "main").split() == ["one"]
    assert mine.read_text() == "old\n"
    assert not mine.with_name("theirs").exists()
    (kept,) = sh(workshop.top, "for-each-ref", "--format=%(refname)", "refs/harness/rescue").splitlines()
    assert f"harness rescue show {kept.removeprefix('refs/harness/rescue/')}" in said.stdout + said.stderr
    assert sh(workshop.top, "show", f"{kept}:.harness/tools/theirs") == "done"
