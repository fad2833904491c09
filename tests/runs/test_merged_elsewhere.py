"""`harness run --merge`: where finished work goes, and when a task whose work others merge is completed."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import for_release
from tests.runs.workshop import KILL_WORKER, Workshop
from tests.system.git.gitrepo import commit_all, put, sh

# A command that opens pull requests, as `gh` and `glab` are called; it notes its words.
TOOL = """#!/bin/sh
printf '%s\\n' "$*" >> {log}
case "$2" in
create) [ -e {log}.down ] && {{ echo "error: the host is away" >&2; exit 1; }}
  echo https://host.example/pull/1 ;;
view) exit 1 ;;
esac
"""


class Remote:
    """A bare repository beside the project, what pushes to it, and a clone for others who work on it."""

    def __init__(self, workshop: Workshop) -> None:
        place = workshop.top.parent
        self.bare, self.others, self.bin = place / "remote.git", place / "others", place / "bin"
        self.log = place / "requests"
        sh(place, "init", "-q", "--bare", "-b", "main", str(self.bare))
        workshop.sh("remote", "add", "origin", str(self.bare))
        workshop.sh("push", "-q", "--set-upstream", "origin", "main")
        sh(place, "clone", "-q", str(self.bare), str(self.others))
        for name in ("gh", "glab"):
            put(self.bin / name, TOOL.format(log=shlex.quote(str(self.log))), executable=True)
        self.path = f"{self.bin}{os.pathsep}{os.environ['PATH']}"

    def at(self, branch: str = "main") -> str:
        return sh(self.bare, "rev-parse", branch)

    @property
    def branches(self) -> list[str]:
        return sh(self.bare, "for-each-ref", "--format=%(refname:short)", "refs/heads").splitlines()

    @property
    def request(self) -> str:
        """Return the branch of the one pull request."""
        (branch,) = (name for name in self.branches if name.startswith("harness/"))
        return branch

    @property
    def asked(self) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if " create " in line]

    def merge(self, how: str) -> None:
        """Let others merge the pull request, as `git merge` does with the option `how`."""
        sh(self.others, "fetch", "-q")
        sh(self.others, "reset", "-q", "--hard", "origin/main")
        sh(self.others, "merge", "-q", how, f"origin/{self.request}")
        if how == "--squash":
            sh(self.others, "commit", "-q", "-m", "All of it (#1)")
        self.push()

    def change(self, name: str, text: str) -> None:
        sh(self.others, "pull", "-q")
        commit_all(self.others, f"Change {name}", {name: text})
        self.push()

    def push(self) -> None:
        sh(self.others, "push", "-q", "origin", "HEAD:main")

    def refuse(self) -> Path:
        """Let a hook of the remote refuse every push."""
        hook = self.bare / "hooks/pre-receive"
        put(hook, "#!/bin/sh\necho 'main is protected' >&2\nexit 1\n", executable=True)
        return hook


@pytest.fixture
def remote(workshop: Workshop) -> Remote:
    return Remote(workshop)


def _kinds(workshop: Workshop) -> list[str | None]:
    return [task.get("halt_kind") for task in workshop.state["tasks"]]


def test_without_the_flag_nothing_is_pushed(workshop: Workshop, remote: Remote) -> None:
    before = remote.at()
    workshop.file_task("a")
    workshop.ends(0, HARNESS_MERGE="push")
    assert (remote.at(), remote.branches) == (before, ["main"])


@pytest.mark.release
def test_branch_leaves_the_users_branch_as_it_is(workshop: Workshop) -> None:
    """A later task stands on the earlier one, and what the user commits meanwhile is taken in."""
    before = workshop.sh("rev-parse", "main")
    first = workshop.file_task("a")
    workshop.file_task("b", "--depends-on", first)
    said = workshop.ends(0, "--merge", "branch")
    assert workshop.sh("rev-parse", "main") == before
    assert workshop.sh("show", "harness/main:a", "harness/main:b") == "done\ndone"
    assert "git merge harness/main" in workshop("status").text
    assert "harness/main" in said.stdout
    workshop.commits("By hand", {"mine": "the user's\n"})
    reviewed = workshop.file_task("c")
    workshop.ends(9, "--merge", "branch", "--review")
    # Records of runs are for reading.
    shutil.rmtree(workshop.top / ".harness/runs")
    workshop.ok("accept", reviewed)
    assert not (workshop.top / "a").exists()
    assert workshop.sh("ls-tree", "--name-only", "harness/main", "a", "c", "mine") == "a\nc\nmine"


def test_what_the_remote_refuses_is_pushed_by_the_next_run(workshop: Workshop, remote: Remote) -> None:
    """The work is merged here all the same, and the run is not done."""
    hook, before = remote.refuse(), remote.at()
    workshop.file_task("a")
    workshop.file_task("b")
    said = workshop.ends(9, "--merge", "push", "--max-tasks", "1")
    assert "origin has not taken main" in said.stdout + said.stderr
    assert "main is protected" in said.stdout + said.stderr
    assert said.stdout.endswith(" --merge push\n")
    assert workshop.statuses() == {"task-001": "completed", "task-002": "pending"}
    assert remote.at() == before
    lacks = "origin/main lacks finished work of main. Push it when you can: git push origin main"
    assert f"the user must act:\n  {lacks}\n" in workshop("status").text
    report = workshop.ok("report")["message"]
    assert "lacks finished work of main" in report
    assert "      git push origin main\n" in report
    # Of a branch that has another name there.
    workshop.sh("config", "branch.main.merge", "refs/heads/develop")
    assert "      git push origin main:develop\n" in workshop.ok("report")["message"]
    workshop.sh("config", "branch.main.merge", "refs/heads/main")
    said = workshop.ends(9, "--merge", "push")
    assert "AGAIN: harness run --merge push pushes the finished work\n" in said.stdout
    hook.unlink()
    workshop.ends(0, "--merge", "push")
    assert "lacks" not in workshop.ok("report")["message"] + workshop("status").text
    assert remote.at() == workshop.sh("rev-parse", "main")


def test_push_merges_what_others_have_pushed_meanwhile(workshop: Workshop, remote: Remote) -> None:
    """The check of the work runs on both; what they push during the run is there before the next merge."""
    remote.change("theirs", "theirs\n")
    push = "echo later > later && git add -A && git commit -q -m Later && git push -q origin HEAD:main"
    do = f"sh cd {shlex.quote(str(remote.others))} && {push}\nwrite a x"
    first = workshop.add("a", "test -e a -a -e theirs", do=do)
    workshop.file_task("b", "--depends-on", first)
    workshop.ends(0, "--merge", "push")
    assert remote.at() == workshop.sh("rev-parse", "main")
    shown = sh(remote.bare, "show", "main:a", "main:theirs", "main:later", "main:b")
    assert shown == "x\ntheirs\nlater\ndone"
    assert (workshop.top / "later").exists()
    workshop.all_is_well()


def test_where_the_host_made_commits_anew_the_report_joins_both(workshop: Workshop, remote: Remote) -> None:
    amend = "git commit-tree -p main^ -m anew 'main^{tree}'"
    anew = f"#!/bin/sh\ngit update-ref refs/heads/main $({amend})\n"
    put(remote.bare / "hooks/post-receive", anew, executable=True)
    workshop.file_task("a")
    workshop.ends(0, "--merge", "push")
    workshop.sh("fetch", "-q")
    workshop.sh("switch", "-q", "-c", "other", "main^")

    (found,) = [each for each in workshop.ok("report")["report"]["decisions"] if each["kind"] == "merge"]

    assert found["what"] == "origin/main and main have parted, and origin/main lacks commits of finished work"
    assert found["commands"] == ["git switch main && git pull --rebase origin main && git push origin main"]
    subprocess.run(found["commands"][0], shell=True, cwd=workshop.top, check=True, capture_output=True)
    assert workshop.sh("rev-parse", "main") == remote.at()
    assert [each["kind"] for each in workshop.ok("report")["report"]["decisions"]] == ["check"]


@pytest.mark.release
def test_others_commits_on_the_remote_are_never_overwritten(workshop: Workshop, remote: Remote) -> None:
    """Those that conflict with work that is merged here stay there, and the user merges them."""
    hook = remote.refuse()
    workshop.file_task("a")
    workshop.ends(9, "--merge", "push")
    hook.unlink()
    remote.change("a", "theirs\n")
    theirs = remote.at()
    said = workshop.ends(9, "--merge", "push")
    assert remote.at() == theirs
    assert "fetch first" in said.stdout + said.stderr or "non-fast-forward" in said.stdout + said.stderr
    workshop.sh("pull", "-q", "--no-rebase", "--no-edit", "-X", "ours")
    workshop.ends(0, "--merge", "push")
    assert sh(remote.bare, "show", "main:a") == "done"


@pytest.mark.release
def test_only_finished_work_and_what_is_below_it_is_pushed(workshop: Workshop, remote: Remote) -> None:
    """A commit of the user's on top of it stays here."""
    workshop.file_task("a")
    workshop.ends(0)
    workshop.commits("By hand", {"mine": "not for others yet\n"})
    workshop.run("--merge", "push")
    assert remote.at() == workshop.sh("rev-parse", "main^")


@pytest.mark.parametrize("how", ["--squash", *for_release("--no-ff", "--ff-only")])
def test_a_merged_pull_request_completes_its_tasks(workshop: Workshop, remote: Remote, how: str) -> None:
    """One request for what is finished; what depends on it waits, and goes on where others have merged."""
    before = workshop.sh("rev-parse", "main")
    first = workshop.file_task("a")
    second = workshop.file_task("b")
    third = workshop.file_task("c", "--depends-on", first)

    said = workshop.ends(9, "--merge", "pull-request", PATH=remote.path)

    assert _kinds(workshop) == ["MERGE", "MERGE", None]
    assert f"harness accept {first}" in said.stdout
    assert workshop.sh("rev-parse", "main") == before == remote.at()
    assert len(remote.asked) == 1
    assert f"--head={remote.request} --base=main --title=Make " in remote.asked[0]
    assert "https://host.example/pull/1" in workshop("status").text
    waits = "waits on the branch harness/main until others have merged it. To take it over yourself: git "
    assert waits in " ".join(workshop("status").text.split())
    assert "left HEAD" not in said.stdout + said.stderr
    assert "AGAIN: harness run looks whether others have merged what waits" in said.stdout
    if how != "--squash":
        # A run without the option leaves it to them.
        workshop.ends(9)
        assert workshop.sh("rev-parse", "main") == before
    assert sh(remote.bare, "show", f"{remote.request}:a", f"{remote.request}:b") == "done\ndone"

    workshop.ends(9, "--merge", "pull-request", PATH=remote.path)
    assert (_kinds(workshop), len(remote.asked)) == (["MERGE", "MERGE", None], 1)

    old = remote.request
    remote.merge(how)
    sh(remote.bare, "branch", "-D", old)
    said = workshop.ends(9, "--merge", "pull-request", PATH=remote.path)

    assert f"{first} is completed: origin/main has its work" in said.stdout + said.stderr
    assert workshop.statuses() == {first: "completed", second: "completed", third: "pending"}
    assert (len(remote.asked), remote.request != old) == (2, True)
    assert sh(remote.bare, "diff", "--name-only", f"main...{remote.request}") == "c"

    remote.merge(how)
    workshop.ends(0, "--merge", "pull-request", PATH=remote.path)
    assert set(workshop.statuses().values()) == {"completed"}
    workshop.sh("pull", "-q")
    workshop.done_is_done()


@pytest.mark.release
def test_work_that_others_undo_or_change_is_not_completed(workshop: Workshop, remote: Remote) -> None:
    """What a host reverts, without a word, still waits; a person may say that it is merged all the same."""
    task = workshop.file_task("a")
    workshop.ends(9, "--merge", "pull-request", PATH=remote.path)
    remote.merge("--no-ff")
    sh(remote.others, "revert", "-m", "1", "--no-edit", "HEAD")
    remote.push()
    workshop.ends(9, "--merge", "pull-request", PATH=remote.path)
    assert _kinds(workshop) == ["MERGE"]
    sh(remote.others, "revert", "--no-edit", "HEAD")
    remote.push()
    remote.change("a", "done, and changed by a later commit\n")
    workshop.ends(0, "--merge", "pull-request", PATH=remote.path)
    assert workshop.statuses() == {task: "completed"}


def test_the_report_says_how_to_take_over_what_waits_for_others(workshop: Workshop, remote: Remote) -> None:
    """And a person may say that it is merged."""
    task = workshop.file_task("a")
    workshop.ends(9, "--merge", "pull-request", PATH=remote.path)
    workshop.file_task("b")
    workshop.ends(9)
    (found,) = [each for each in workshop.ok("report")["report"]["decisions"] if each["kind"] == "merge"]
    assert found["what"] == "Finished work waits on the branch harness/main until others have merged it"
    assert found["commands"] == ["git merge harness/main"]
    workshop.ok("accept", task)
    assert workshop.task(task)["status"] == "completed"
    assert remote.branches[0].startswith("harness/")


@pytest.mark.release
def test_returned_work_goes_on_in_the_same_pull_request(workshop: Workshop, remote: Remote) -> None:
    task = workshop.file_task("a")
    workshop.ends(9, "--merge", "pull-request", PATH=remote.path)
    workshop.ok("return", task, "write it twice")
    workshop.ends(9, "--merge", "pull-request", agent="echo done >> a", PATH=remote.path)
    assert sh(remote.bare, "show", f"{remote.request}:a") == "done\ndone"
    assert (_kinds(workshop), workshop.task(task)["attempts"]) == (["MERGE"], 0)
    remote.merge("--squash")
    # A run without the flag looks, too.
    workshop.ends(0)
    assert workshop.statuses() == {task: "completed"}
    assert workshop.task(task)["completed_commit"] == remote.at()


@pytest.mark.release
def test_a_host_that_is_away_is_asked_again(workshop: Workshop, remote: Remote) -> None:
    """The other tasks go on; the next run opens one request for all."""
    down = Path(f"{remote.log}.down")
    down.touch()
    workshop.file_task("a")
    workshop.file_task("b")
    said = workshop.ends(9, "--merge", "pull-request", PATH=remote.path)
    assert "the host is away" in said.stdout + said.stderr
    assert _kinds(workshop) == ["MERGE", "MERGE"]
    down.unlink()
    remote.log.unlink()
    workshop.ends(9, "--merge", "pull-request", PATH=remote.path)
    assert "and 1 more" in "".join(remote.asked)
    assert remote.request


@pytest.mark.usefixtures("remote")
def test_the_report_says_why_no_request_was_opened(workshop: Workshop) -> None:
    workshop.file_task("a")
    no_login = "echo 'gh: please log in' >&2; exit 4"
    workshop.ends(9, "--merge", "pull-request", "--merge-command", no_login)
    assert "no pull request yet: gh: please log in" in workshop("report").text
    workshop.ends(9, "--merge", "pull-request", "--merge-command", "echo https://host.example/3")
    report = workshop("report").text
    assert "please log in" not in report
    assert "https://host.example/3" in report


@pytest.mark.parametrize("step", ["open", *for_release("push")])
def test_a_kill_on_the_way_opens_no_second_request(workshop: Workshop, remote: Remote, step: str) -> None:
    once = workshop.top.parent / "once"
    kill = f"[ -e {once} ] || {{ touch {once}; {KILL_WORKER}; sleep 60; }}"
    if step == "push":
        workshop.put(".git/hooks/pre-push", f"#!/bin/sh\n{kill}\n", executable=True)
    workshop.file_task("a")
    workshop.file_task("b")
    told = '"$HARNESS_BRANCH $HARNESS_BASE $HARNESS_TITLE"'
    note = f"echo {told} >> {shlex.quote(str(remote.log))}; echo https://host.example/2"
    command = note if step == "push" else f"{kill}; {note}"
    workshop.ends(9, "--merge", "pull-request", "--merge-command", command)
    assert once.exists()
    assert remote.log.read_text() == f"{remote.request} main Make a, and 1 more\n"
    assert sh(remote.bare, "show", f"{remote.request}:a", f"{remote.request}:b") == "done\ndone"
    assert workshop("status").text.count("(https://host.example/2)") == 2


def test_what_is_missing_is_said_before_anything_begins(workshop: Workshop, remote: Remote) -> None:
    workshop.file_task("a")
    empty = workshop.top.parent / "empty"
    empty.mkdir()
    for name in ("git", "sh"):
        (empty / name).symlink_to(shutil.which(name) or "")
    assert "neither gh nor glab" in workshop.run("--merge", "pull-request", PATH=str(empty)).stderr
    workshop.commits("By hand", {"mine": "unpushed\n"})
    said = workshop.run("--merge", "pull-request", PATH=remote.path)
    assert "main has 1 commits that origin/main lacks" in said.stderr
    workshop.sh("branch", "--unset-upstream")
    assert "git push --set-upstream origin main" in workshop.run("--merge", "push").stderr
    assert workshop.statuses() == {"task-001": "pending"}
