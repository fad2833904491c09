"""What a worker's place has in it, wherever the project is, and how many sessions a run takes."""

from __future__ import annotations

import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness_lib.attempts import worktree_slots
from harness_lib.core.context import Context
from tests.runs.conftest import Make
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put, sh

HARNESS = f"{sys.executable} -m harness_lib"


def merged(workshop: Workshop, branch: str = "main") -> list[str]:
    """Return what is on the branch besides the first commit, and nothing else of ours."""
    assert sh(workshop.top, "worktree", "list", "--porcelain").count("worktree ") == 1
    assert list((workshop.home / "worktrees").glob("*")) == []
    return sorted(sh(workshop.top, "log", "--format=%s", branch).splitlines()[:-1])


def test_each_work_tree_is_prepared_once_and_each_worker_has_ports_of_its_own(
    workshop: Workshop, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    facts = '"$HARNESS_WORKER_NUMBER" "$HARNESS_PORT_FIRST" "$HARNESS_PORT_LAST" "$PWD"'
    put(workshop.top / "harness-init.sh", f"echo init {facts} >> {seen}\n")
    # Each waits for the other: two workers, whichever gets which task.
    for mine, other in (("a", "b"), ("b", "a")):
        meet = f"touch {tmp_path / mine}\nwait {tmp_path / other}"
        workshop.add(
            mine,
            f"echo check {facts} >> {seen}",
            do=f"{meet}\nsh echo agent {facts} >> {seen}\nwrite {mine} x",
        )
    workshop.file_task("later")

    said = workshop.run("-j", "2", "--no-final-check")

    assert said.returncode == 0, said.stdout + said.stderr
    lines = [line.split() for line in seen.read_text().splitlines()]
    theirs = [line for line in lines if len(line) == 5]
    assert {(line[0], *line[1:4]) for line in theirs} == {
        (who, number, first, last)
        for who in ("init", "check", "agent")
        for number, first, last in (("1", "20000", "20099"), ("2", "20100", "20199"))
    }
    assert len([line for line in theirs if line[0] == "init"]) == 2
    assert all(line[4].endswith("/" + line[1]) for line in theirs)


def test_ignored_files_that_checks_need_are_there_and_nothing_else_of_a_persons(make_workshop: Make) -> None:
    workshop = make_workshop()
    put(workshop.top / ".gitignore", ".env\nnode_modules/\n/.venv\n")
    put(workshop.top / ".env.local", "tracked\n")
    sh(workshop.top, "add", "-A")
    sh(workshop.top, "commit", "-q", "-m", "What is ignored")
    put(workshop.top / ".env", "secret\n")
    put(workshop.top / "node_modules" / "left" / "pad.js", "pad\n")
    put(workshop.top / "notes.txt", "untracked\n")
    put(workshop.top / ".venv" / "bin" / "tool", "#!/bin/sh\nexit 0\n", executable=True)
    here = "grep -q secret .env && test -f node_modules/left/pad.js && .venv/bin/tool && test ! -e notes.txt"
    workshop.add("Look", f"{here} && grep -q tracked .env.local && test -f f", do="write f x")

    said = workshop.run()

    assert said.returncode == 0, said.stdout + said.stderr
    assert sh(workshop.top, "ls-files").split() == [".env.local", ".gitignore", "README.md", "f"]
    assert (workshop.top / "notes.txt").read_text() == "untracked\n"


def test_a_list_of_ones_own_says_what_is_brought(make_workshop: Make) -> None:
    workshop = make_workshop()
    put(workshop.top / ".gitignore", "*.key\ncache/\n.env\n")
    put(workshop.top / ".worktreeinclude", "# for tests\nsecrets/*.key\n\ncache/\nplain.txt\n../outside\n")
    sh(workshop.top, "add", "-A")
    sh(workshop.top, "commit", "-q", "-m", "What is brought")
    for name in ("secrets/one.key", "secrets/two.key", "cache/deep/file", ".env", "plain.txt", "../outside"):
        put(workshop.top / name, "here\n")
    brought = "test -f secrets/one.key && test -f secrets/two.key && test -f cache/deep/file"
    workshop.add("Look", f"{brought} && test ! -e plain.txt && test ! -e .env && test -f f", do="write f x")

    said = workshop.run()

    assert said.returncode == 0, said.stdout + said.stderr


def test_what_a_project_inside_of_the_repository_needs_is_brought_to_its_place(
    tmp_path: Path, make_workshop: Make
) -> None:
    above = make_workshop().top
    inside = Workshop(above / "pa", tmp_path / "home")
    put(above / ".gitignore", ".env\nnode_modules/\n")
    put(inside.top / "README.md", "inside\n")
    sh(above, "add", "-A")
    sh(above, "commit", "-q", "-m", "A project inside")
    for place in (above, inside.top, above / "pb"):
        put(place / ".env", f"of {place.name}\n")
    put(inside.top / "node_modules" / "pad.js", "pad\n")
    inside.ok("init", ".")
    brought = "grep -q 'of project' .env && grep -q 'of pa' pa/.env && test -f pa/node_modules/pad.js"
    inside.add("Look", f"{brought} && test ! -e pb && test -f f", do="write f x")

    said = inside.run()

    assert said.returncode == 0, said.stdout + said.stderr


def test_a_list_of_what_is_brought_names_nothing_above_itself(tmp_path: Path, make_workshop: Make) -> None:
    above = make_workshop().top
    inside = Workshop(above / "pa", tmp_path / "home")
    put(above / ".gitignore", "*.key\n")
    put(inside.top / ".worktreeinclude", "../above.key\nsub/../../above.key\ninside.key\n")
    sh(above, "add", "-A")
    sh(above, "commit", "-q", "-m", "A project inside")
    put(above / "above.key", "precious\n")
    put(inside.top / "inside.key", "here\n")
    inside.ok("init", ".")
    inside.add("Look", "test -f pa/inside.key && test ! -e above.key && test -f f", do="write f x")

    said = inside.run()

    assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.parametrize("place", ["", "pa"], ids=["above", "inside"])
def test_the_list_of_what_is_brought_may_lie_in_either_place(
    tmp_path: Path, make_workshop: Make, place: str
) -> None:
    """Its lines are seen from where it lies, and it is instead of what is brought without one."""
    above = make_workshop().top
    inside = Workshop(above / "pa", tmp_path / "home")
    put(above / ".gitignore", ".env\n*.key\n")
    put(inside.top / "README.md", "inside\n")
    put(above / place / ".worktreeinclude", "keys/*.key\n")
    sh(above, "add", "-A")
    sh(above, "commit", "-q", "-m", "A project inside")
    for name in ("keys/one.key", "pa/keys/one.key", ".env", "pa/.env"):
        put(above / name, "here\n")
    inside.ok("init", ".")
    there, other = ("keys", "pa/keys") if not place else ("pa/keys", "keys")
    alone = f"test -f {there}/one.key && test ! -e {other} && test ! -e .env && test ! -e pa/.env"
    inside.add("Look", f"{alone} && test -f f", do="write f x")

    said = inside.run()

    assert said.returncode == 0, said.stdout + said.stderr


def test_a_list_that_git_tracks_is_not_merged_with_the_work(workshop: Workshop) -> None:
    workshop.file_task("one")
    workshop.file_task("two")
    sh(workshop.top, "add", "--force", "harness-tasks.json")
    sh(workshop.top, "commit", "-q", "-m", "The list, too")
    committed = sh(workshop.top, "show", "HEAD:harness-tasks.json")

    said = workshop.run("-j", "2")

    assert said.returncode == 0, said.stdout + said.stderr
    assert set(workshop.statuses().values()) == {"completed"}
    assert merged(workshop) == ["The list, too", "[task-001] Make one", "[task-002] Make two"]
    assert sh(workshop.top, "show", "HEAD:harness-tasks.json") == committed
    assert sh(workshop.top, "status", "--porcelain").split() == ["M", "harness-tasks.json"]


def test_a_project_in_a_directory_of_the_repository(tmp_path: Path, make_workshop: Make) -> None:
    above = make_workshop().top
    inside = Workshop(above / "apps" / "one", tmp_path / "home")
    put(inside.top / "README.md", "inside\n")
    sh(above, "add", "-A")
    sh(above, "commit", "-q", "-m", "A project inside")
    inside.ok("init", ".")
    inside.add("Inside", "grep -q done f", "--cwd", "apps/one", do="write apps/one/f done")
    inside.add("Above", "grep -q done g", do="write g done")

    said = inside.run("-j", "2")

    assert said.returncode == 0, said.stdout + said.stderr
    assert set(inside.statuses().values()) == {"completed"}
    assert ((inside.top / "f").read_text(), (above / "g").read_text()) == ("done\n", "done\n")
    assert sh(above, "status", "--porcelain", "--untracked-files=all") == ""
    assert merged(inside) == ["A project inside", "[task-001] Inside", "[task-002] Above"]


def test_spaces_in_every_path_and_a_branch_with_a_slash(tmp_path: Path, make_workshop: Make) -> None:
    make_workshop()
    workshop = Workshop.make(tmp_path / "with a space", files={"README.md": "hello\n"})
    workshop.home = tmp_path / "my 'own' home"
    workshop.home.mkdir()
    sh(workshop.top, "switch", "-q", "-c", "feature/of-mine")
    put(workshop.top / "harness-init.sh", 'test -d "$PWD"\n')
    workshop.file_task("one")
    workshop.file_task("two")
    put(workshop.top / "two", "in the way\n")

    said = workshop.run("-j", "2")

    assert said.returncode == 9, said.stdout + said.stderr
    assert "git merge harness/feature/of-mine" in said.stdout
    (workshop.top / "two").unlink()
    workshop.file_task("three")
    assert workshop.run().returncode == 0
    done = ["[task-001] Make one", "[task-002] Make two", "[task-003] Make three"]
    assert merged(workshop, "feature/of-mine") == done
    assert sh(workshop.top, "log", "--format=%s", "main") == "Begin"
    assert sh(workshop.top, "for-each-ref", "--format=%(refname:short)", "refs/heads").split() == [
        "feature/of-mine",
        "main",
    ]


def test_without_a_branch_there_is_nowhere_to_merge(workshop: Workshop) -> None:
    workshop.file_task("one")
    sh(workshop.top, "switch", "-q", "--detach")

    said = workshop.run()

    assert said.returncode == 2
    assert "HEAD is detached" in said.stderr
    assert "git switch -c NAME" in said.stderr
    assert workshop.state["session_count"] == 0


def test_a_repository_without_a_commit_is_told_how_to_get_one(workshop: Workshop) -> None:
    workshop.file_task("one")
    sh(workshop.top, "update-ref", "-d", "refs/heads/main")
    shutil.rmtree(workshop.top / ".git" / "logs")

    for argv in ([], ["--target", "typo"]):
        said = workshop.run(*argv)
        assert said.returncode == 7
        assert "has no commit yet" in said.stderr
        assert "git commit --allow-empty" in said.stderr

    sh(workshop.top, "commit", "-q", "--allow-empty", "-m", "Start")
    assert workshop.run().returncode == 0


@pytest.mark.parametrize("name", ["typo", "refs/heads/typo", "main~0", ""])
def test_a_target_that_is_no_branch_is_a_mistake_of_who_typed_it(workshop: Workshop, name: str) -> None:
    workshop.file_task("one")
    for number in range(6):
        sh(workshop.top, "branch", f"b{number}")
    sh(workshop.top, "branch", "typos")
    sh(workshop.top, "branch", "harness/b0")

    said = workshop.run("--target", name)

    assert said.returncode == 2
    assert f"There is no branch {name.removeprefix('refs/heads/')}." in said.stderr
    assert "and 3 more" in said.stderr
    assert "harness/b0" not in said.stderr
    assert ("There are: typos, b0" in said.stderr) == name.endswith("typo")
    assert workshop.state["session_count"] == 0


@pytest.mark.parametrize("name", ["harness", "harness/main/mine"])
def test_a_branch_in_the_place_of_ours_is_named_before_anything_begins(workshop: Workshop, name: str) -> None:
    workshop.file_task("one")
    sh(workshop.top, "branch", name)

    said = workshop.run()

    assert said.returncode == 7
    assert f"beside {name}." in said.stderr
    assert workshop.state["session_count"] == 0
    sh(workshop.top, "branch", "-m", name, "mine")
    assert workshop.run().returncode == 0


def test_what_lies_where_a_work_tree_has_to_be_makes_way(workshop: Workshop) -> None:
    workshop.file_task("one")
    ctx = Context(env={**os.environ, "HARNESS_HOME": str(workshop.home)}, cwd=workshop.top)
    dead = worktree_slots.directory_of(ctx, "run-dead")
    put(dead.slot(1) / "half" / "made", "x\n")
    place = worktree_slots.directory_of(ctx, "run-next")
    put(place.slot(1) / "half" / "made", "x\n")
    put(place.slot(2), "a file\n")

    for number in (1, 2):
        git, new = worktree_slots.checkout_clean(
            ctx, place.slot(number), sh(workshop.top, "rev-parse", "HEAD")
        )
        assert new
        assert sorted(path.name for path in git.top.iterdir()) == [".git", ".gitignore", "README.md"]

    assert workshop.run().returncode == 0
    workshop.done_is_done()
    workshop.nothing_is_left_over()


def test_a_run_that_begins_has_its_place_although_others_end(workshop: Workshop) -> None:
    """The directory of all runs goes when it is empty, which may be the moment before it is needed."""
    commit = sh(workshop.top, "rev-parse", "HEAD")

    def begin_and_end(name: str) -> None:
        ctx = Context(env={**os.environ, "HARNESS_HOME": str(workshop.home)}, cwd=workshop.top)
        for _ in range(200):
            place = worktree_slots.directory_of(ctx, name)
            put(place.lock, "")
            assert worktree_slots.teardown(ctx, place, commit) == []

    with ThreadPoolExecutor() as threads:
        for each in [threads.submit(begin_and_end, f"run-{number}") for number in range(4)]:
            each.result()

    assert list((workshop.home / "worktrees").iterdir()) == []


def test_the_place_of_another_run_stays(workshop: Workshop) -> None:
    ctx = Context(env={**os.environ, "HARNESS_HOME": str(workshop.home)}, cwd=workshop.top)
    commit = sh(workshop.top, "rev-parse", "HEAD")
    first, second = (worktree_slots.directory_of(ctx, name) for name in ("run-1", "run-2"))
    assert worktree_slots.teardown(ctx, first, commit) == []
    assert second.path.is_dir()
    assert worktree_slots.teardown(ctx, second, commit) == []
    assert not worktree_slots.home(ctx).exists()
    assert worktree_slots.sweep(ctx, commit, set()) == []
    worktree_slots.end_survivors(ctx, set())


def test_a_session_that_is_full_is_followed_by_the_next_one(workshop: Workshop) -> None:
    workshop.ok("edit", "--max-tasks-per-session", "2")
    first = [workshop.file_task(name) for name in ("one", "two")]
    both = [word for name in first for word in ("--depends-on", name)]
    second = [workshop.file_task(name, *both) for name in ("three", "four")]
    workshop.file_task("five", *(word for name in second for word in ("--depends-on", name)))

    said = workshop.run("-j", "2", "--no-final-check")

    assert said.returncode == 0, said.stdout + said.stderr
    assert set(workshop.statuses().values()) == {"completed"}
    assert workshop.state["session_count"] == 3
    workshop.nothing_is_left_over()


def test_what_was_begun_in_a_session_that_is_full_counts_in_the_next_one(
    workshop: Workshop, tmp_path: Path
) -> None:
    workshop.ok("edit", "--max-tasks-per-session", "2", "--max-sessions", "2")
    workshop.add("Slow", "test -f slow", do=f"wait {tmp_path / 'third'}\nwrite slow x")
    for name in ("one", "two"):
        workshop.file_task(name)
    third = f"touch {tmp_path / 'third'}\nwait {tmp_path / 'end'}\nwrite third x"
    name = workshop.add("Third", "test -f third", do=third)
    workshop.file_task("last", "--depends-on", name)
    run = workshop.start("-j", "2", "--no-final-check")

    workshop.wait_for("the slow one ends", lambda: workshop.statuses()["task-001"] == "completed")
    sessions = [each["finished_attempts"] for each in workshop.state["sessions"]]
    put(tmp_path / "end", "")

    assert run.wait(90) == 9, workshop.printed
    assert sessions == [1]
    assert list(workshop.statuses().values()).count("completed") == 4


@pytest.mark.parametrize("verb", ["finish", "run", "start"])
def test_an_agent_that_types_what_is_the_supervisors_is_told_so(workshop: Workshop, verb: str) -> None:
    workshop.add("Obedient", "test -s told", do=f"sh {HARNESS} {verb} 2> told; echo $? >> told")

    said = workshop.run()

    assert said.returncode == 0, said.stdout + said.stderr
    told = (workshop.top / "told").read_text()
    assert f"harness {verb} is not for you" in told
    assert told.split()[-1] == "2"
    workshop.nothing_is_left_over()
