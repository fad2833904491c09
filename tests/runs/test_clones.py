"""Each worker has a repository of its own: whatever its agent does there, the user's stays what it was."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness_lib.errors import AwayError
from harness_lib.system.git import worktrees
from tests.conftest import for_release
from tests.full_disk import fill, small_disk
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import commit_all, put, sh

# Ours, and the objects, which only become more.
OWN = ("harness", "objects", "refs/harness", "logs/refs/harness", "worktrees")
# What a merge into the branch that is checked out changes.
MERGED = {"index", "logs/HEAD", "logs/refs/heads/main", "refs/heads/main"}

# Everything that is within reach of git in a work tree; each line for itself, whatever the others have done.
DEEDS = """
git config core.hooksPath $RAN.hooks; git config core.fsmonitor "touch $RAN.fsmonitor; false"
git config filter.evil.clean "touch $RAN.clean; tr a-z A-Z"
git config alias.status "!touch $RAN.alias"; git config core.excludesFile "$PWD/.hidden"; echo f > .hidden
for hook in pre-commit post-commit post-checkout reference-transaction post-index-change; do
    printf '#!/bin/sh\\ntouch %s.hook\\n' $RAN > .git/hooks/$hook && chmod +x .git/hooks/$hook
done
echo '* filter=evil' >> .git/info/attributes; echo 'g filter=evil' > .gitattributes
git branch mine; git branch -f side HEAD; git branch -D gone; git tag -f v1 HEAD; git tag mine
git -c core.hooksPath=/dev/null stash -q; git stash apply -q
git replace -f $(git rev-parse HEAD^) HEAD; git rev-parse HEAD > .git/info/grafts
git update-ref refs/heads/main HEAD^; git update-ref -d refs/heads/side; git symbolic-ref HEAD refs/heads/main
git worktree add -q ../beside HEAD; git worktree prune
git remote set-url origin /nowhere; git remote add evil /evil
git reflog expire --expire=now --all; git gc -q --prune=now
mkdir -p .git/refs/heads; touch .git/index.lock .git/HEAD.lock .git/packed-refs.lock .git/config.lock
echo done > f; echo done > g
"""


def _files(git_dir: Path) -> dict[str, bytes]:
    """Return path → content of everything in a git directory but what is ours, and the objects."""
    found = {}
    for path in git_dir.rglob("*"):
        name = str(path.relative_to(git_dir))
        if not path.is_dir() and not name.startswith((*(f"{each}/" for each in OWN), "harness-")):
            found[name] = path.read_bytes()
    return found


@pytest.fixture
def shared(workshop: Workshop) -> Workshop:
    """Return a project with branches, a tag, a stash, a hook, settings, and two commits."""
    top = workshop.top
    commit_all(top, "More", {"more": "x\n"})
    for name in ("side", "gone"):
        sh(top, "branch", name)
    sh(top, "tag", "v1", "HEAD~1")
    put(top / "README.md", "the user's own\n")
    sh(top, "stash", "-q")
    sh(top, "config", "alias.mine", "status")
    sh(top, "remote", "add", "origin", "https://me:secret@example.invalid/x.git")
    put(top / ".git/hooks/pre-push", "#!/bin/sh\n")
    return workshop


@pytest.mark.parametrize(
    "ending",
    [
        "",
        *for_release(
            "rm -rf .git && git init -q && git add -A",
            "rm -rf .git",
            "ln -s /tmp t && rm -rf .git && ln -s t .git",
        ),
    ],
)
def test_whatever_an_agent_does_with_git_stays_its_own(shared: Workshop, tmp_path: Path, ending: str) -> None:
    put(tmp_path / "deeds.sh", f"RAN={tmp_path}/ran\n{DEEDS}\nrm -f {tmp_path}/ran*\n{ending}\n")
    commit = "git add -A && git -c user.name=Agent -c user.email=a@b commit -qm 'the agent says'"
    do = f"write f done\nwrite g done\nsh {commit}\nsh sh {tmp_path}/deeds.sh; true"
    shared.add("Deeds", "grep -q done f", do=do)
    shared.file_task("after", "--depends-on", "task-001")
    before = _files(shared.top / ".git")

    said = shared.ends(0)

    assert [task["attempts"] for task in shared.state["tasks"]] == [0, 0], said.stdout
    after = _files(shared.top / ".git")
    assert {name for name in {*before, *after} if before.get(name) != after.get(name)} <= MERGED
    assert shared.sh("show", "main:f", "main:g", "main:after").split() == ["done"] * 3
    assert [path.name for path in tmp_path.glob("ran*")] == []
    assert shared.sh("fsck", "--strict", "--no-dangling") == ""
    shared.done_is_done()
    assert list((shared.home / "worktrees").glob("*")) == []


def test_an_agents_own_commits_arrive_and_what_it_made_beside_them_is_kept(shared: Workshop) -> None:
    commit = "git add -A && git -c user.name=Agent -c user.email=a@b commit -qm"
    aside = f"git switch -q -c aside && echo a > aside && {commit} aside && git switch -q --detach HEAD~1"
    first = f"write f one\nsh {commit} 'first of mine'\nsh {aside}"
    then = f"write f two\nsh {commit} 'second of mine'\nwrite g left\nsh git add g && git stash -q"
    shared.add("Commits", "grep -q two f", do=f"{first}\n{then}")

    said = shared.ends(0)

    subjects = shared.sh("log", "--format=%an %s", "-2", "main").splitlines()
    assert subjects == ["Agent second of mine", "Agent first of mine"]
    kept = shared.sh("for-each-ref", "--format=%(refname)", "refs/harness/rescue").splitlines()
    assert kept == [f"refs/harness/rescue/task-001/1-refs-{name}" for name in ("heads-aside", "stash")]
    assert shared.sh("show", f"{kept[0]}:aside", f"{kept[1]}:g").split() == ["a", "left"]
    assert "harness rescue show task-001/1-refs-heads-aside" in said.stdout
    assert shared.harness("rescue", "show", "task-001/1-refs-heads-aside").returncode == 0


@pytest.mark.release
def test_work_on_a_branch_of_an_agent_is_shown_to_the_next_and_to_the_user(workshop: Workshop) -> None:
    brief = workshop.home / "brief"
    leaves = (
        "sh git switch -qc issue-42 && echo done > f && git add f && git commit -qm $$ && git checkout -q -"
    )
    do = f"{leaves}\nsh cat $HARNESS_BRIEF_FILE > {brief}"
    workshop.add("Make f", "grep -q done f", "--max-attempts", "2", do=do)

    workshop.ends(9)

    assert "rolled back): harness rescue show task-001/1-refs-heads-issue-42" in brief.read_text()
    (failed,) = workshop.ok("report")["report"]["decisions"]
    show = "harness rescue show task-001/2-refs-heads-issue-42"
    assert failed["commands"] == [show, "harness retry task-001"]
    assert "+done" in workshop(*show.split()[1:]).out


def test_objects_are_copied_from_where_an_agent_borrowed_them(shared: Workshop, tmp_path: Path) -> None:
    other = tmp_path / "other"
    work = (
        f"git clone -q --bare . {other} && GIT_OBJECT_DIRECTORY={other}/objects "
        "GIT_ALTERNATE_OBJECT_DIRECTORIES=$(git rev-parse --git-common-dir)/objects sh -c "
        f"'git add -A && git -c user.name=a -c user.email=a@b commit -qm borrowed' && echo {other}/objects "
        ">> .git/objects/info/alternates"
    )
    shared.add("Borrows", "grep -q done f", do=f"write f done\nsh {work}")

    shared.ends(0)

    subprocess.run(["rm", "-rf", str(other)], check=True)
    assert shared.sh("log", "-1", "--format=%s", "main") == "borrowed"
    assert shared.sh("fsck", "--strict", "--no-dangling") == ""


def test_a_commit_in_which_git_finds_fault_is_not_taken_and_the_files_are(shared: Workshop) -> None:
    forge = (
        "tree=$(printf '100644 blob %s\\t.git\\n' $(git rev-parse HEAD:more) | git mktree)\n"
        "commit=$(git -c user.name=a -c user.email=a@b commit-tree -p HEAD -m forged $tree)\n"
        "git update-ref --no-deref HEAD $commit"
    )
    put(shared.top.parent / "forge.sh", forge)
    shared.add("Forges", "grep -q done f", do=f"write f done\nsh sh {shared.top.parent}/forge.sh")

    said = shared.ends(0)

    assert "only its files are" in said.stdout
    assert "forged" not in shared.sh("log", "--all", "--format=%s")
    shared.done_is_done()


@pytest.mark.release
def test_what_a_worker_began_with_outlives_what_the_user_does(shared: Workshop, tmp_path: Path) -> None:
    """The branch is rewritten, the tag goes, and git is told to keep nothing that nobody names."""
    top = shared.top
    working, checking, go, checked = (tmp_path / name for name in ("working", "checking", "go", "checked"))
    wait = f"touch {checking}; until [ -e {checked} ]; do sleep 0.05; done; grep -q done f"
    commit = "git add -A && git -c user.name=a -c user.email=a@b commit -qm mine"
    shared.add("Slow", wait, do=f"write f done\nsh {commit}\ntouch {working}\nwait {go}\nwrite g done")
    base = sh(top, "rev-parse", "HEAD")
    run = shared.start("--no-precheck", until=working)

    def forget() -> None:
        sh(top, "reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
        sh(top, "stash", "clear")
        sh(top, "gc", "-q", "--prune=now")
        sh(top, "worktree", "prune")

    sh(top, "commit", "-q", "--amend", "-m", "Said better")
    sh(top, "tag", "-d", "v1")
    sh(top, "branch", "-D", "side", "gone")
    forget()
    assert sh(top, "cat-file", "-t", base) == "commit"
    go.touch()
    shared.wait_for("the check runs", checking.exists)
    forget()
    checked.touch()

    assert run.wait() == 0, shared.printed
    assert sh(top, "show", "main:f", "main:g").split() == ["done", "done"]
    assert sh(top, "log", "--format=%s", "main").splitlines()[1:3] == ["mine", "Said better"]
    shared.done_is_done()


def test_a_clone_has_what_work_needs_and_no_secret(shared: Workshop, tmp_path: Path) -> None:
    for key, value in (("user.name", "Me"), ("core.autocrlf", "input"), ("filter.up.clean", "tr a-z A-Z")):
        shared.sh("config", key, value)
    shared.sh("config", "http.extraheader", "Authorization: secret")
    seen = tmp_path / "seen"
    look = " ".join(
        f"(echo ':{ask}'; {ask}) >> {seen};"
        for ask in (
            "git config user.name",
            "git config core.autocrlf",
            "git config filter.up.clean",
            "git config remote.origin.url",
            "git rev-list --count main side v1",
            "git stash list",
            "git status --porcelain",
            "git worktree list | grep -c project",
            "grep -r secret .git/config",
        )
    )
    shared.add("Looks", "grep -q done f", do=f"sh {look} true\nwrite f done")

    shared.ends(0)

    answers = [part.partition("\n")[2].strip() for part in seen.read_text().split(":git ")[1:]]
    assert answers[:5] == ["Me", "input", "tr a-z A-Z", "https://example.invalid/x.git", "2"]
    assert "secret" not in seen.read_text().replace("grep -r secret", "")


@pytest.mark.release
def test_whoever_works_in_a_clone_finds_the_list_without_being_told(shared: Workshop, tmp_path: Path) -> None:
    """A shell that an agent starts afresh has no HARNESS_STATE_ROOT, nor have hooks."""
    seen = tmp_path / "seen"
    ask = f"env -u HARNESS_STATE_ROOT -u HARNESS_TASK_ID harness show task-001 > {seen} 2>&1"
    shared.add("Asks", "grep -q done f", do=f"sh mkdir sub; cd sub; {ask}; true\nwrite f done")

    shared.ends(0, PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}")

    assert "Asks" in seen.read_text()


@pytest.mark.release
def test_a_run_that_an_earlier_version_has_begun_is_recovered(shared: Workshop, tmp_path: Path) -> None:
    """Its work trees are linked ones, without a clone; its notes of branches are refs that nobody reads."""
    started = tmp_path / "started"
    commit = "git add -A && git -c user.name=a -c user.email=a@b commit -qm mine"
    do = f"write f one\ntouch {started}\nonce wait /nowhere\nwrite f two"
    shared.add("Half", "test $(wc -l < f) = 2", do=do)
    shared.start(until=started)
    shared.cut_power()
    top = Path(shared.task("task-001")["worktree"])
    shutil.rmtree(top / ".git")
    worktrees.link(top).rename(top / ".git")
    (Path((top / ".git").read_text().split()[1]) / "locked").unlink()
    sh(top, "switch", "-q", "-c", "an-agents")
    subprocess.run(["sh", "-c", commit], cwd=top, check=True)
    shared.sh("update-ref", "refs/harness/seen/heads/main", "main")

    shared.ends(0)

    assert shared.sh("show", "main:f").split() == ["one", "two"]
    assert shared.sh("for-each-ref", "refs/harness/seen") == ""
    assert list((shared.home / "worktrees").glob("*")) == []
    shared.done_is_done()


@pytest.mark.release
def test_work_trees_whose_directory_the_user_has_deleted_are_in_nobodys_way(shared: Workshop) -> None:
    for _ in range(2):
        shared.cleaned()
        shutil.rmtree(shared.home / "worktrees")
    shared.file_task("f")
    shared.ends(0)
    assert len(shared.sh("worktree", "list").splitlines()) == 1


@pytest.mark.parametrize("left", ["nothing", *for_release("a half")])
def test_a_git_that_was_killed_in_worktree_add_is_in_nobodys_way(shared: Workshop, left: str) -> None:
    """Git locks a work tree that it is making, under a reason in the language of the user."""
    place = shared.work_tree()
    shared.sh("worktree", "add", "-q", "--detach", str(place))
    shared.put(".git/worktrees/1/locked", "initialisiere")
    if left == "nothing":
        shutil.rmtree(place)
    else:
        (place / "README.md").unlink()
    mine = shared.home / "mine"
    shared.sh("worktree", "add", "-q", "--detach", str(mine))
    shared.put(".git/worktrees/mine/locked", "on a disk that is not plugged in")
    shutil.rmtree(mine)

    git, new, _ = shared.cleaned()

    assert (new, (git.top / "README.md").exists()) == (True, True)
    assert str(mine) in shared.sh("worktree", "list")


def test_a_work_tree_stays_as_it_is_when_the_disk_is_full(shared: Workshop) -> None:
    """It is no defect of the work tree, and there is no room for another one."""
    with small_disk(shared.home / "worktrees"):
        shared.cleaned()
        shared.commits("Large", {"large": os.urandom(100_000)})
        filler = fill(shared.home / "worktrees")
        with pytest.raises(AwayError):
            shared.cleaned()
        filler.unlink()

        git, new, _ = shared.cleaned()

        assert (new, (git.top / "large").stat().st_size) == (False, 100_000)


def test_only_a_work_tree_that_was_found_clean_is_known_to_have_no_changes(shared: Workshop) -> None:
    made, clean = shared.cleaned(), shared.cleaned()
    put(made.git.top / "left.txt", "by an agent that was killed\n")
    cleaned = shared.cleaned()
    shared.commits("More", {"more": b"more"})
    moved = shared.cleaned()

    assert (made.settings, cleaned.settings, moved.settings) == (None, None, None)
    assert clean.settings == clean.git.settings()
