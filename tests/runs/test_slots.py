"""What a worker's place has in it, wherever the project is, and what lies in its way."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness_lib.attempts import target_branch, worker_worktrees
from harness_lib.core import lifecycle
from harness_lib.system.git import locks
from tests.conftest import for_release
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put


def test_each_work_tree_is_prepared_once_with_ports_of_its_own(workshop: Workshop, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    facts = '"$HARNESS_WORKER_NUMBER" "$HARNESS_PORT_FIRST" "$HARNESS_PORT_LAST" "$PWD"'
    workshop.put("harness-init.sh", f"echo init {facts} >> {seen}\n")
    # Each waits for the other: two workers, whichever gets which task.
    for mine, other in (("a", "b"), ("b", "a")):
        meet = f"touch {tmp_path / mine}\nwait {tmp_path / other}"
        do = f"{meet}\nsh echo agent {facts} >> {seen}\nwrite {mine} x"
        workshop.add(mine, f"echo check {facts} >> {seen}", do=do)
    workshop.file_task("later")

    workshop.ends(0, "-j", "2")

    lines = [line.split() for line in seen.read_text().splitlines()]
    theirs = [line for line in lines if len(line) == 5]
    ports = (["1", "20000", "20099"], ["2", "20100", "20199"])
    assert {tuple(line[:4]) for line in theirs} == {
        (who, *each) for who in ("init", "check", "agent") for each in ports
    }
    assert len([line for line in theirs if line[0] == "init"]) == 2
    assert all(line[4].endswith("/" + line[1]) for line in theirs)


@pytest.mark.release
def test_a_work_tree_that_a_program_has_changed_is_cleaned_again(workshop: Workshop) -> None:
    """Between its preparation and the claim: here `harness-init.sh`, else what outlives a killed worker."""
    workshop.commits("A lock file", {"lock": "as committed\n"})
    workshop.put("harness-init.sh", 'test -z "$HARNESS_WORKER_NUMBER" || echo renewed >> lock\n')
    workshop.file_task("one")

    said = workshop.ends(0)

    assert "The work tree is cleaned once more." in said.stdout
    assert workshop.sh("show", "main:lock") == "as committed"
    workshop.done_is_done()


@pytest.mark.release
def test_what_lies_where_a_work_tree_has_to_be_makes_way(workshop: Workshop) -> None:
    workshop.file_task("one")
    dead = worker_worktrees.directory_of(workshop.context(), "run-dead")
    put(dead.worktree(1) / "half/made", "x\n")
    put(workshop.work_tree(1) / "half/made", "x\n")
    put(workshop.work_tree(2), "a file\n")

    for number in (1, 2):
        git, new, _ = workshop.cleaned(number)
        assert new
        assert sorted(path.name for path in git.top.iterdir()) == [".git", ".gitignore", "README.md"]

    workshop.ends(0)
    workshop.all_is_well()


def test_a_run_that_begins_has_its_place_although_others_end(workshop: Workshop) -> None:
    """The directory of all runs goes when it is empty, which may be the moment before it is needed."""
    commit = workshop.sh("rev-parse", "HEAD")

    def begin_and_end(name: str) -> None:
        ctx = workshop.context()
        for _ in range(200):
            place = worker_worktrees.directory_of(ctx, name)
            put(place.lock, "")
            assert worker_worktrees.teardown(ctx, place, commit) == []

    with ThreadPoolExecutor() as threads:
        for each in [threads.submit(begin_and_end, f"run-{number}") for number in range(4)]:
            each.result()

    assert list((workshop.home / "worktrees").iterdir()) == []


def test_the_place_of_another_run_stays(workshop: Workshop) -> None:
    ctx = workshop.context()
    commit = workshop.sh("rev-parse", "HEAD")
    first, second = (worker_worktrees.directory_of(ctx, name) for name in ("run-1", "run-2"))
    worker_worktrees.checkout_clean(ctx, first.worktree(1), commit)
    assert worker_worktrees.teardown(ctx, first, commit) == []
    assert not (workshop.home / "set-aside").exists()
    assert second.path.is_dir()
    assert worker_worktrees.teardown(ctx, second, commit) == []
    assert not worker_worktrees.home(ctx).exists()
    assert worker_worktrees.sweep(ctx, commit) == []
    worker_worktrees.end_survivors(ctx)


def test_what_workers_finish_together_above_the_limit_counts_in_the_next_session(workshop: Workshop) -> None:
    workshop.ok("edit", "--max-tasks-per-session", "2")
    workshop.file_task("one")
    ctx = workshop.context()
    with ctx.store.transaction() as tx:
        full = lifecycle.open_one(tx, ctx)._replace(finished_attempts=3)
        tx.replace_session(full)
        began = lifecycle.begin_next(tx, full)

    assert began.finished_attempts == 1


def test_two_workers_finish_no_more_than_the_last_session_allows(workshop: Workshop) -> None:
    workshop.ok("edit", "--max-tasks-per-session", "3", "--max-sessions", "1")
    for number in range(5):
        workshop.add(f"Task {number}", f"test -f {number}", do=f"sleep 0.3\nwrite {number} x")

    assert workshop.start("-j", "2").wait() == 9, workshop.printed

    assert list(workshop.statuses().values()).count("completed") == 3


# -- what is brought into a worker's place: ignored files that checks need, by default or by a list of them


def brought(project: Workshop) -> set[str]:
    """Return the files that are in the place of a worker besides those of the commit."""
    git = project.cleaned().git
    files = {str(each.relative_to(git.top)) for each in git.top.rglob("*") if each.is_file()}
    return {name for name in files if not name.startswith(".git/")} - set(git.lines("ls-files"))


def inside(above: Workshop, home: Path, *, ignored: str) -> Workshop:
    """Return a project with a list in the directory `pa` of the repository `above`."""
    made = Workshop(above.top / "pa", home)
    above.commits("A project inside", {".gitignore": ignored, "pa/README.md": "inside\n"})
    made.ok("init", ".")
    return made


LOCAL = ".claude/settings.local.json"


def test_ignored_files_that_checks_need_are_there_and_nothing_else_of_a_persons(workshop: Workshop) -> None:
    ignored = ".env\nnode_modules/\n/.venv\nvendor/bundle\napi/vendor\nbuild/\ndeps/\n_build/\n*.local.json\n"
    ignored += "go.work\n"
    tracked = {".gitignore": ignored, ".env.local": "tracked\n", "vendor/.keep": ""}
    workshop.commits("What is ignored", tracked)
    put(workshop.top.parent / "beside/env", "secret\n")
    (workshop.top / ".env").symlink_to("../beside/env")
    for name in (
        "node_modules/left/pad.js",
        "apps/web/node_modules/pad.js",
        "api/vendor/x",
        "vendor/bundle/x",
        "deps/x",
        "_build/x",
        "go.work",
        "build/.env",
        LOCAL,
    ):
        workshop.put(name, "pad\n")
    put(workshop.top.parent / "beside/pad.js", "pad\n")
    (workshop.top / "vendor/bundle/out").symlink_to("../../../beside")
    (workshop.top / "vendor/bundle/lost").symlink_to("../../../lost")
    workshop.put("notes.txt", "untracked\n")
    workshop.put(".venv/bin/tool", "#!/bin/sh\nexit 0\n", executable=True)
    here = "grep -q secret .env && .venv/bin/tool && test ! -e notes.txt && test ! -e build"
    here += f" && cat node_modules/left/pad.js apps/web/node_modules/pad.js api/vendor/x {LOCAL}"
    here += " && cat vendor/bundle/x vendor/bundle/out/pad.js deps/x _build/x go.work"
    workshop.add("Look", f"{here} && grep -q tracked .env.local && test -f f", do="write f x")

    workshop.ends(0)

    assert workshop.sh("ls-files").split() == [".env.local", ".gitignore", "README.md", "f", "vendor/.keep"]
    assert workshop.read("notes.txt") == "untracked\n"


@pytest.mark.parametrize("is_link", [True, False], ids=["a link", "a file"])
def test_nothing_found_where_no_directory_is(workshop: Workshop, tmp_path: Path, is_link: bool) -> None:
    """A link may lead out of the work tree, to where an agent's sandbox lets it write nothing."""
    outside = tmp_path / "outside"
    outside.mkdir()
    web = workshop.top / "web"
    if is_link:
        web.symlink_to(outside)
    else:
        put(web, "a file\n")
    workshop.commits("No directory", {".gitignore": "node_modules\n"})
    web.unlink()
    workshop.put("web/node_modules/pad.js", "pad\n")
    workshop.file_task("one")

    # The work waits beside the branch: the user has changes there.
    said = workshop.ends(9)

    assert "tried again" not in said.stdout
    assert workshop.statuses() == {"task-001": "completed"}
    assert not any(outside.iterdir())
    assert workshop.read("web/node_modules/pad.js") == "pad\n"


def test_what_a_check_lacks_that_the_users_checkout_has_is_named(workshop: Workshop) -> None:
    """Not what git ignores and the check has, nor what nobody has."""
    workshop.commits("What is ignored", {".gitignore": "*.db\nbuilt/\n.env\n", "api/x": "x\n"})
    for name in ("api/dev.db", "built/deep/made", "built/CMakeCache.txt", ".env", "more.db"):
        workshop.put(name, "here\n")
    lacks = {
        "cat dev.db && test -f ../f": "'api/dev.db'",
        "cat ../built/deep/made .env x && test -f ../f": "'built'",
        "cat ../.env no.db ../built/no && test -f ../f": "",
    }
    for check in lacks:
        workshop.add(check, check, "--cwd", "api", "--max-attempts", "1", do="write f x")

    workshop.ends(9)

    for task, names in zip(workshop.state["tasks"], lacks.values(), strict=True):
        said = task["error_log"][-1].partition("Git ignores ")[2]
        assert said.partition(",")[0] == names
        assert said.endswith(", or name it in .worktreeinclude.") is (names == "'api/dev.db'")
    workshop.put(".worktreeinclude", "api/dev.db\n")
    workshop.ok("retry", "task-001")
    workshop.run()
    assert workshop.statuses()["task-001"] == "completed"


def test_a_list_of_ones_own_says_what_found(workshop: Workshop) -> None:
    listed = "# for tests\nsecrets/*.key\n\ncache/\nplain.txt\n../outside\nmade\n"
    ignored = "*.key\ncache/\n.env\nmade/\n"
    workshop.commits("What is brought", {".gitignore": ignored, ".worktreeinclude": listed})
    for name in ("secrets/one.key", "secrets/two.key", "cache/deep/file", ".env", "plain.txt", "../outside"):
        workshop.put(name, "here\n")
    # A copy of it would build the user's checkout.
    workshop.put("made/CMakeCache.txt", "here\n")

    assert brought(workshop) == {"secrets/one.key", "secrets/two.key", "cache/deep/file"}


def test_what_a_project_inside_of_the_repository_needs_found_to_its_place(workshop: Workshop) -> None:
    project = inside(workshop, workshop.home, ignored=".env\nnode_modules/\n")
    for place in (workshop.top, project.top, workshop.top / "pb"):
        put(place / ".env", f"of {place.name}\n")
    project.put("node_modules/pad.js", "pad\n")

    assert brought(project) == {".env", "pa/.env", "pa/node_modules/pad.js"}


@pytest.mark.parametrize(
    ("place", "listed", "found"),
    [
        ("", "keys/*.key", "keys/one.key"),
        ("pa/", "keys/*.key", "pa/keys/one.key"),
        ("pa/", "../keys/one.key\nsub/../../keys/one.key\nkeys/one.key", "pa/keys/one.key"),
    ],
    ids=["above", "inside", "nothing above itself"],
)
def test_the_list_may_lie_in_either_place(workshop: Workshop, place: str, listed: str, found: str) -> None:
    """Its lines are seen from where it lies, and it is instead of what is brought without one."""
    workshop.put(f"{place}.worktreeinclude", f"{listed}\n")
    project = inside(workshop, workshop.home, ignored=".env\n*.key\n")
    for name in ("keys/one.key", "pa/keys/one.key", ".env", "pa/.env"):
        workshop.put(name, "here\n")

    assert brought(project) == {found}


# -- lock files of git that stand in a work tree of a run: no night ends because of one


@pytest.mark.parametrize("name", [*for_release("packed-refs"), "refs/heads/harness/main"])
def test_what_has_gone_over_is_forgotten_past_a_lock_of_a_dead_git(workshop: Workshop, name: str) -> None:
    """The one that was killed had just brought it over, and was at deleting the branch where it waited."""
    workshop.file_task("one")
    workshop.put("README.md", "the user is writing\n")
    workshop.ends(9)
    workshop.sh("restore", "README.md")
    workshop.sh("merge", "-q", "--ff-only", "harness/main")
    workshop.sh("pack-refs", "--all")
    # What a holder that was killed leaves: since when it was at work, and what its git had locked.
    put(workshop.top / ".git" / locks.LOCK_NAME, f"{time.time() - 1:.3f}\n")
    put(workshop.top / ".git" / f"{name}.lock", "")

    target_branch.deliver(workshop.context(), "refs/heads/main")

    workshop.all_is_well()
