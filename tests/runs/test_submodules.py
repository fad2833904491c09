"""Submodules and repositories inside a work tree: none is merged that nobody else has, and none is lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import for_release
from tests.runs.workshop import COMMAND, Workshop
from tests.system.git.gitrepo import World, put, sh

COMMIT = "git add -A && git -c user.name=a -c user.email=a@b commit -qm s"
ALLOW = ("-c", "protocol.file.allow=always")
LOCAL = f"git {' '.join(ALLOW)}"


def links(workshop: Workshop, commit: str = "main") -> list[str]:
    """Return what `commit` names of other repositories."""
    rows = workshop.sh("ls-tree", "-r", commit).splitlines()
    return [row for row in rows if row.startswith("160000")]


def aside(workshop: Workshop) -> list[Path]:
    return sorted((workshop.home / "set-aside").glob("*/*"))


@pytest.fixture
def submodule(workshop: Workshop, tmp_path: Path) -> Workshop:
    """Return a project with the submodule `lib`, which every new work tree fetches."""
    remote = tmp_path / "lib.git"
    first = World.make(tmp_path / "first", {"l": "one\n"}).top
    sh(tmp_path, "clone", "-q", "--bare", str(first), str(remote))
    workshop.sh(*ALLOW, "submodule", "--quiet", "add", str(remote), "lib")
    workshop.commits("A submodule", {"harness-init.sh": f"{LOCAL} submodule --quiet update --init\n"})
    workshop.trusts()
    return workshop


@pytest.mark.parametrize("more", ["", *for_release(f" && {COMMIT}")], ids=["below", "and in the project"])
def test_a_commit_of_a_submodule_that_nobody_has_goes_back(submodule: Workshop, more: str) -> None:
    before = links(submodule)
    work = f"cd lib && echo two >> l && {COMMIT} && cd ..{more}"
    submodule.add("Lib", "grep -q one lib/l && test -f f", do=f"write f x\nonce sh {work}")

    said = submodule.ends(0)

    assert submodule.task("task-001")["attempts"] == 0
    assert "A submodule at a commit that only this work tree had: 'lib'" in said.stdout
    assert links(submodule) == before
    (kept,) = aside(submodule)
    assert f"It was moved to {kept}, with its commits" in " ".join(said.stdout.split())
    assert (kept / "lib/l").read_text() == "one\ntwo\n"
    assert sh(kept / "lib", "log", "--format=%s").splitlines() == ["s", "Begin"]
    assert sh(kept / "lib", "status", "--porcelain") == ""
    submodule.nothing_is_left_over()


def test_what_a_failed_attempt_has_made_of_a_submodule_is_kept_with_its_commits(submodule: Workshop) -> None:
    work = f"cd lib && echo two >> l && {COMMIT} && echo three >> l"
    submodule.add("Lib", "false", "--max-attempts", "1", do=f"sh {work}")

    submodule.ends(9)

    (kept,) = aside(submodule)
    assert (kept / "lib/l").read_text() == "one\ntwo\nthree\n"
    assert sh(kept / "lib", "log", "--format=%s").splitlines() == ["s", "Begin"]
    submodule.nothing_is_left_over()


@pytest.mark.release
def test_a_commit_of_a_submodule_that_was_pushed_lands_and_later_tasks_have_it(submodule: Workshop) -> None:
    work = f"cd lib && echo two >> l && {COMMIT} && {LOCAL} push -q origin HEAD:main"
    one = submodule.add("Lib", "grep -q two lib/l", do=f"sh {work}")
    submodule.add("After", "grep -q two lib/l && test -f f", "--depends-on", one, do="write f x")

    said = submodule.ends(0)

    assert [task["attempts"] for task in submodule.state["tasks"]] == [0, 0]
    assert "handed back" not in said.stdout
    remote = sh(submodule.top.parent / "lib.git", "rev-parse", "main")
    assert remote in links(submodule)[0]
    assert aside(submodule) == []
    # The submodule's own checkout is the user's to update; nothing else differs.
    assert submodule.sh("status", "--porcelain") == "M lib"
    assert submodule.read("lib/l") == "one\n"
    submodule.sh(*ALLOW, "submodule", "--quiet", "update")
    submodule.all_is_well()


@pytest.mark.release
@pytest.mark.parametrize("does", ["edits", "commits", "stages"])
def test_what_the_user_does_in_a_submodule_is_a_change_of_theirs(
    submodule: Workshop, tmp_path: Path, does: str
) -> None:
    """It had stayed behind what was merged."""
    started, go = tmp_path / "started", tmp_path / "go"
    work = f"cd lib && echo two >> l && {COMMIT} && {LOCAL} push -q origin HEAD:main"
    one = submodule.add("Lib", "grep -q two lib/l", do=f"sh {work}")
    slow = f"touch {started}\nwait {go}\nwrite g done"
    submodule.add("Slow", "grep -q done g", "--depends-on", one, do=slow)
    submodule.start(until=started)
    assert submodule.sh("status", "--porcelain") == "M lib"
    submodule.put("lib/l", "the user is writing\n")
    if does != "edits":
        sh(submodule.top / "lib", "commit", "-qam", "the user's")
    if does == "stages":
        submodule.sh("add", "lib")
    status, before = submodule.sh("status", "--porcelain"), links(submodule)
    go.touch()

    submodule.has_ended(9)
    assert "you have changes in lib" in submodule.printed
    assert submodule.sh("status", "--porcelain") == status
    assert (links(submodule), submodule.read("lib/l")) == (before, "the user is writing\n")


@pytest.mark.release
def test_a_commit_that_the_projects_own_submodule_has_lands(submodule: Workshop) -> None:
    submodule.put("lib/l", "mine\n")
    sh(submodule.top / "lib", "commit", "-qam", "mine")
    mine = sh(submodule.top / "lib", "rev-parse", "HEAD")
    sh(submodule.top / "lib", "switch", "-q", "--detach", "HEAD~1")
    here = submodule.top / "lib"
    work = f"cd lib && {LOCAL} fetch -q {here} {mine} && git checkout -q {mine}"
    submodule.add("Lib", "grep -q mine lib/l", do=f"sh {work}")

    submodule.ends(0)

    assert submodule.task("task-001")["attempts"] == 0
    assert mine in links(submodule, submodule.task("task-001")["completed_commit"])[0]


@pytest.mark.release
def test_a_submodule_that_an_agent_adds_properly_lands(submodule: Workshop) -> None:
    remote = submodule.top.parent / "lib.git"
    submodule.add("More", "grep -q one more/l", do=f"sh {LOCAL} submodule --quiet add {remote} more")

    submodule.ends(0)

    assert submodule.task("task-001")["attempts"] == 0
    assert len(links(submodule)) == 2


@pytest.mark.parametrize("how", ["git add lib", *for_release("true")], ids=str)
def test_files_in_the_place_of_a_submodule_are_committed(submodule: Workshop, how: str) -> None:
    """They wait, as the user's own checkout of the submodule is in their place."""
    work = f"git rm -q lib && mkdir lib && echo mine > lib/l && {how}"
    submodule.add("Own", "grep -q mine lib/l", do=f"sh {work}")

    said = submodule.ends(9)

    assert "is not taken" not in said.stdout
    assert links(submodule, "harness/main") == []
    assert submodule.sh("show", "harness/main:lib/l") == "mine"


def test_an_index_that_an_agent_removes_takes_no_submodule_away(submodule: Workshop) -> None:
    """One that is not checked out shows in the index alone."""
    submodule.commits("By hand", {"harness-init.sh": "true\n"})
    submodule.trusts()
    submodule.sh("submodule", "--quiet", "deinit", "-f", "lib")
    shutil.rmtree(submodule.top / ".git/modules")
    before = links(submodule)
    submodule.add("Own", "test -f f", do="write f x\nsh rm .git/index")

    submodule.ends(0)

    assert links(submodule) == before


@pytest.mark.release
@pytest.mark.parametrize("work", ["echo two >> lib/l", "echo new > lib/new"], ids=["changed", "new"])
def test_files_of_a_submodule_that_nobody_has_committed_are_kept(submodule: Workshop, work: str) -> None:
    submodule.add("Lib", "test -f f", do=f"write f x\nsh {work}")

    said = submodule.ends(0)

    (kept,) = aside(submodule)
    assert str(kept) in said.stdout
    made = "".join(path.read_text() for path in sorted((kept / "lib").glob("[ln]*")))
    assert made == {"echo two >> lib/l": "one\ntwo\n", "echo new > lib/new": "one\nnew\n"}[work]
    assert sh(kept / "lib", "log", "--format=%s") == "Begin"
    submodule.nothing_is_left_over()


@pytest.mark.parametrize("where", ["lib", *for_release("own")])
def test_no_program_of_an_agents_git_runs_in_harness(submodule: Workshop, tmp_path: Path, where: str) -> None:
    """Some of their files look as if only reading them through a filter tells whether they have changed."""
    ran = tmp_path / "ran"
    keys = ("filter.theirs.clean", "filter.theirs.process", "core.fsmonitor", "core.sshCommand")
    lines = (
        f"git init -q own; cd own; echo one > l; {COMMIT}; cd ..; {COMMIT}; cd {where}",
        "echo '* filter=theirs' > .gitattributes",
        *(f"git config {key} 'touch {ran}; cat'" for key in keys),
        "echo two > l; touch -d '1 hour ago' l",
    )
    put(tmp_path / "deeds.sh", "\n".join(lines))
    submodule.add("Lib", "test -f f", do=f"write f x\nonce sh sh {tmp_path}/deeds.sh")

    submodule.run()

    assert submodule.task("task-001")["status"] == "completed"
    assert not ran.exists()


@pytest.mark.release
def test_a_work_tree_whose_submodule_stands_elsewhere_by_now_is_made_anew(submodule: Workshop) -> None:
    sh(submodule.cleaned().git.top, *ALLOW, "submodule", "--quiet", "update", "--init")
    same, new, _ = submodule.cleaned()
    assert (new, (same.top / "lib/l").exists()) == (False, True)
    submodule.put("lib/l", "two\n")
    sh(submodule.top / "lib", "commit", "-qam", "two")
    submodule.sh("commit", "-qam", "Another commit of lib")

    git, new, _ = submodule.cleaned()

    assert (new, (git.top / "lib/l").read_text(), aside(submodule)) == (True, "two\n", [])


@pytest.mark.release
def test_a_submodule_that_is_broken_or_half_moved_is_kept(submodule: Workshop) -> None:
    git = submodule.cleaned().git
    sh(git.top, *ALLOW, "submodule", "--quiet", "update", "--init")
    (git.top / "lib/.git").rename(git.top / "lib/.git-coming")

    assert submodule.cleaned().is_new
    (kept,) = aside(submodule)
    assert (kept / "lib/l").read_text() == "one\n"


@pytest.mark.release
def test_a_submodule_that_was_removed_is_named_to_the_next_agent(submodule: Workshop, tmp_path: Path) -> None:
    brief = tmp_path / "brief"
    nest = "once sh git init -q app && touch app/f"
    submodule.add("Less", "test ! -e lib/l", do=f"sh git add -A; git rm -qf lib\n{nest}")

    said = submodule.ends(0, agent=f"tee {brief} | {COMMAND}")

    assert submodule.task("task-001")["attempts"] == 0, said.stdout + str(submodule.state)
    assert "but for one thing: there the submodule 'lib' is removed" in brief.read_text()
    assert links(submodule) == []


def test_agents_have_the_submodules_of_the_user_offline(submodule: Workshop, tmp_path: Path) -> None:
    """At the recorded commits, those inside of others too; each a repository that is the agent's own."""
    inner = World.make(tmp_path / "inner", {"i": "inner\n"}).top
    lib = submodule.top / "lib"
    sh(lib, *ALLOW, "submodule", "--quiet", "add", str(inner), "deep")
    sh(lib, "commit", "-qam", "Deeper")
    submodule.sh("rm", "-qf", "harness-init.sh")
    submodule.sh("commit", "-qam", "No script, and a commit of lib that only the user has")
    for remote in (inner, tmp_path / "lib.git"):
        remote.rename(remote.with_suffix(".gone"))
    before = sh(lib, "for-each-ref"), (submodule.top / ".git/modules/lib/config").read_bytes()
    for name in ("f", "g"):
        work = f"cd lib && git branch mine && git config alias.x y && cat l deep/i > ../{name}"
        check = f"grep -q inner {name} && grep -q one {name} && git -C lib status"
        submodule.add(name, check, do=f"sh {work}")

    submodule.ends(0)

    assert [task["attempts"] for task in submodule.state["tasks"]] == [0, 0]
    after = sh(lib, "for-each-ref"), (submodule.top / ".git/modules/lib/config").read_bytes()
    assert (after, aside(submodule)) == (before, [])
    submodule.all_is_well()


# -- repositories inside a work tree: none is merged that nobody else has, and none is lost


NEST = "mkdir {0} && cd {0} && git init -q && echo code > main.txt"
PLAIN = "mkdir -p {0} && echo code > {0}/main.txt"
MADE = {
    "bare": NEST,
    "begun": f"{NEST} && {COMMIT}",
    "committed": f"({NEST} && {COMMIT}) && {COMMIT}",
    "staged": f"({NEST} && {COMMIT}) && git add {{0}}",
}


def nests_aside(workshop: Workshop, name: str) -> list[Path]:
    """Return the repositories called `name` that were moved aside."""
    return sorted((workshop.home / "set-aside").glob(f"*/*/{name}"))


@pytest.mark.release
def test_a_repository_of_its_own_goes_back_and_lands_as_files(workshop: Workshop, tmp_path: Path) -> None:
    """Whether the agent has committed in it, or has told the work tree's git of it."""
    for name, made in MADE.items():
        brief = f'sh cp "$HARNESS_BRIEF_FILE" {tmp_path}/{name}'
        again = PLAIN.format(name)
        workshop.add(name, f"test -f {name}/main.txt", do=f"{brief}\nonce sh {made.format(name)}\nsh {again}")

    workshop.ends(0, "-j", "2")

    for task in workshop.state["tasks"]:
        name, brief = task["title"], (tmp_path / task["title"]).read_text()
        (kept,) = nests_aside(workshop, name)
        assert task["attempts"] == 0
        assert f"cannot be merged. A repository of its own: '{name}'" in brief
        assert "without its .git" in brief
        assert str(kept.parent) in brief
        assert (kept / "main.txt").read_text() == "code\n"
        assert (kept / ".git").is_dir()
        assert workshop.sh("show", f"main:{name}/main.txt") == "code"
    workshop.all_is_well()


@pytest.mark.release
def test_an_agent_that_insists_on_one_has_failed_unless_ignored(workshop: Workshop) -> None:
    """What stands beside one is there for the next agent; git ignores another, the check makes a third."""
    workshop.put(".gitignore", "node_modules/\n")
    workshop.sh("commit", "-qam", "Ignore")
    app, beside = f"{NEST} && {COMMIT}".format("app"), f"({NEST} && {COMMIT}) && {COMMIT}".format("lib")
    workshop.add("Insists", "test -f app/main.txt", "--max-attempts", "1", do=f"sh {app}")
    workshop.add("Beside", "grep -q done f", do=f"write f done\nonce sh {beside}")
    ignored = "sh mkdir -p node_modules/x && git -C node_modules/x init -q"
    workshop.add("Ignored", "grep -q done g", do=f"write g done\n{ignored}")
    workshop.add("Tested", "grep -q done h && mkdir -p t && git -C t init -q", do="write h done")

    said = workshop.ends(9)

    assert "'app'" in workshop.task("task-001")["error_log"][0]
    assert list(workshop.statuses().values()) == ["failed", "completed", "completed", "completed"]
    assert [task["attempts"] for task in workshop.state["tasks"]] == [1, 0, 0, 0]
    back = [task["title"] for task in workshop.state["tasks"] if f"{task['id']} goes back" in said.stdout]
    assert back == ["Insists", "Beside"]
    assert links(workshop) == []
    assert [(kept / "main.txt").read_text() for kept in nests_aside(workshop, "app")] == ["code\n"] * 3
    assert len(nests_aside(workshop, "lib")) == 1
    assert nests_aside(workshop, "x") == []
    workshop.nothing_is_left_over()


def test_a_chat_that_recovers_a_killed_run_merges_none_either(workshop: Workshop, tmp_path: Path) -> None:
    started, made = tmp_path / "started", MADE["begun"].format("app")
    name = workshop.add("App", "test -f app/main.txt", do=f"sh {made}\ntouch {started}\nsleep 600")
    workshop.start(until=started)
    workshop.cut_power()

    said = workshop.ok("start")

    assert links(workshop) == []
    assert workshop.task(name)["handback"]["rounds"] == 1, said
    (kept,) = nests_aside(workshop, "app")
    assert (kept / "main.txt").read_text() == "code\n"
