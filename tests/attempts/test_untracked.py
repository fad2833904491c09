"""What git does not track, or was told to overlook: files of the user, caches, hidden and sparse files."""

from __future__ import annotations

import shutil

import pytest

from harness_lib import typed
from harness_lib.attempts import baseline
from tests.conftest import for_release
from tests.system.git.gitrepo import put
from tests.verbs.project import Agent, Project, begin, own_work_tree


@pytest.mark.parametrize("how", ["changed", *for_release("deleted")])
def test_a_passing_attempt_that_takes_an_untracked_file_keeps_it_as_it_was(
    project: Project, agent: Agent, how: str
) -> None:
    project.put("mine.txt", "my notes\n")
    project.put("untouched.txt", "not mentioned\n")
    begin(agent)
    project.put("done")
    if how == "changed":
        project.put("mine.txt", "overwritten\n")
    else:
        (project.top / "mine.txt").unlink()

    reply = agent.ok("finish")

    warning = next(line for line in reply["warnings"] if "mine.txt" in line)
    assert "harness rescue show task-001/1-before" in warning
    assert "untouched.txt" not in str(reply)
    assert project.grep("WARN", "mine.txt")
    assert project.git("show", "refs/harness/rescue/task-001/1-before:mine.txt") == "my notes"
    assert "my notes" in agent.ok("rescue", "show", "task-001/1-before")["message"]
    assert project.in_commit() == ["done", "tracked.txt"]


def test_a_file_whose_place_is_taken_is_kept_and_named_with_what_stands_there(
    project: Project, agent: Agent
) -> None:
    """An attempt puts what git ignores where an untracked and two tracked files were."""
    project.commit(files={"out/deep.txt": "deep\n"})
    project.commit(files={".gitignore": "*.o\nout\n"})
    project.put("mine.txt", "my notes\n")
    begin(agent)
    (project.top / "mine.txt").unlink()
    project.put("mine.txt/x.o")
    (project.top / "tracked.txt").unlink()
    project.put("tracked.txt/x.o")
    shutil.rmtree(project.top / "out")
    project.put("out")

    warned = agent.fails(1, "finish")["warnings"]

    # Also who stands in a directory below types it as it is.
    back = f"Move that away, then type: git -C {typed.word(project.top)} checkout-index --"
    assert f"out/deep.txt could not be put back: a file stands at out. {back} out/deep.txt" in warned
    moved = "could not be put back: a directory stands at"
    assert f"tracked.txt {moved} tracked.txt. {back} tracked.txt" in warned
    assert f"mine.txt {moved} mine.txt. Move that away first" in warned
    assert "kept: harness rescue show task-001/1-before" in " ".join(warned)
    for name in ("tracked.txt", "mine.txt", "out"):
        (project.top / name).rename(project.top.parent / name)
    project.git("checkout-index", "--", "tracked.txt", "out/deep.txt")
    agent.ok("rescue", "apply", "task-001/1-before")
    assert (project.read("tracked.txt"), project.read("mine.txt")) == ("one\n", "my notes\n")
    assert project.git("status", "--porcelain") == "?? mine.txt"


def test_an_interrupted_attempt_that_only_took_an_untracked_file_keeps_it(
    project: Project, agent: Agent
) -> None:
    project.put("mine.txt", "my notes\n")
    begin(agent)
    (project.top / "mine.txt").unlink()
    agent.die()

    said = project.agent("next").ok("start")

    assert project.task()["error_log"] == ["[SESSION_TIMEOUT] No progress detected"]
    assert "harness rescue show task-001/1-before" in " ".join(said["warnings"])
    assert project.git("show", "refs/harness/rescue/task-001/1-before:mine.txt") == "my notes"


def test_one_that_is_too_large_to_keep_is_named(
    project: Project, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (baseline.LIMIT_EACH_BYTES, baseline.LIMIT_TOTAL_BYTES) == (10 << 20, 100 << 20)
    monkeypatch.setattr(baseline, "LIMIT_EACH_BYTES", 10)
    project.put("big.bin", "x" * 11)

    agent.ok("add", "One", "--validate", "true")
    brief = agent.ok("claim")["brief"]

    assert "big.bin" in brief
    assert project.grep("WARN", "[task-001]", "big.bin")
    assert "big.bin" in agent.ok("claim")["brief"]


@pytest.mark.parametrize("how", ["edited", *for_release("new", "whole directory")])
def test_what_an_attempt_has_ignored_goes_with_it(project: Project, agent: Agent, how: str) -> None:
    project.commit(files={".gitignore": "*.log\n"})
    project.put("build.log", "ignored before\n")
    before = project.files
    begin(agent)
    if how == "new":
        project.put("sub/.gitignore", "made.txt\n")
        made = "sub/made.txt"
    else:
        made = "gen/made.txt"
        project.put(".gitignore", "*.log\n" + ("gen/\n" if how == "whole directory" else "made.txt\n"))
    agent.finishes({made: "by the attempt\n"}, code=1)

    assert project.files == before
    assert project.git("show", f"{project.refs()[0]}:{made}") == "by the attempt"


def test_what_the_user_s_own_rules_ignore_stays(project: Project, agent: Agent) -> None:
    """Rules that are untracked themselves, or that lie in what they ignore, are not the attempt's."""
    project.put(".gitignore", "secret\n")
    project.put("secret", "of mine\n")
    project.put(".venv/.gitignore", "*\n")
    project.put(".venv/bin/python", "mine\n")
    begin(agent)
    before = project.files
    agent.finishes({"new/.gitignore": "made\n", "new/made": "by the attempt\n"}, code=1)

    assert project.files == before


def test_a_check_that_passes_on_nothing_git_takes_says_so(project: Project, agent: Agent) -> None:
    project.commit(files={".gitignore": "out\n"})
    begin(agent, "test -f out")
    reply = agent.finishes({"out": "x\n"})

    assert "nothing was committed" in reply["message"]
    assert any("git ignores" in line for line in reply["warnings"])
    assert project.grep("WARN", "[task-001]", "Nothing was committed")


def test_harness_files_that_an_attempt_has_committed_leave_its_history(
    project: Project, agent: Agent
) -> None:
    begin(agent)
    base = project.head
    project.put("one")
    project.git("add", "-f", "one", "harness-tasks.json")
    project.commit_only("Work, and the list with it")
    project.git("add", "-f", "harness-progress.txt")
    project.commit_only("Nothing but the log")
    project.put("done")
    project.git("add", "done")
    project.git("commit", "-qm", "The rest", "--author", "Somebody <s@example.invalid>")

    agent.ok("finish")

    assert project.in_commit() == ["done", "one", "tracked.txt"]
    log = project.git("log", "--format=%an %s", f"{base}..HEAD").splitlines()
    assert log == ["Somebody The rest", "Test Person Work, and the list with it"]
    assert project.git("log", "--format=%h", f"{base}..HEAD", "--", "harness-*") == ""
    assert project.task()["completed_commit"] == project.head
    assert project.git("status", "--porcelain") == ""
    assert project.file.exists()


def test_an_attempt_that_did_nothing_beside_files_of_the_user_has_no_work_to_show(
    project: Project, agent: Agent
) -> None:
    project.put("plan.md", "mine\n")
    begin(agent)

    reply = agent.fails(1, "finish")

    assert reply["rescue"] is None
    assert project.refs() == []
    assert "harness rescue" not in agent.ok("claim")["brief"]
    assert project.read("plan.md") == "mine\n"


# -- caches and environments that no rule of the project names: no attempt commits, keeps or removes them


CACHES = (
    "__pycache__/a.cpython-311.pyc",
    "src/__pycache__/b.pyc",
    ".pytest_cache/v/cache/lastfailed",
    ".mypy_cache/3.11/a.json",
    ".ruff_cache/x",
    ".tox/py/bin/python",
    "node_modules/left-pad/index.js",
    "web/node_modules/left-pad/index.js",
    ".venv/bin/python",
    "venv/bin/python",
    ".gradle/x",
    ".DS_Store",
    "target/debug/main",
    "a/b/one two/target/debug/main",
)


@pytest.fixture
def rusty(project: Project) -> Project:
    """Return a project with crates at its top and further down."""
    project.commit(files={"Cargo.toml": "[package]\n", "a/b/one two/Cargo.toml": "[package]\n"})
    return project


def fill(project: Project) -> None:
    for name in CACHES:
        project.put(name, "cache\n")


def test_a_passed_attempt_commits_no_cache_and_says_nothing_of_it(rusty: Project, agent: Agent) -> None:
    begin(agent)
    rusty.put("done")
    fill(rusty)

    reply = agent.ok("finish")

    assert rusty.in_commit() == ["Cargo.toml", "a/b/one two/Cargo.toml", "done", "tracked.txt"]
    assert reply["warnings"] == []
    assert set(CACHES) <= set(rusty.files)


def test_a_failed_attempt_leaves_caches_where_they_are_and_rescues_none(rusty: Project, agent: Agent) -> None:
    begin(agent)
    rusty.put("half")
    fill(rusty)

    agent.fails(1, "finish")

    (rescued,) = rusty.refs()
    assert set(rusty.in_commit(rescued)) & {*CACHES, "half"} == {"half"}
    assert set(CACHES) <= set(rusty.files)
    assert "half" not in rusty.files


def test_caches_are_no_change_between_attempts(rusty: Project, agent: Agent) -> None:
    """No copy of them is kept at the claim, and a release finds nothing to keep."""
    fill(rusty)
    begin(agent)

    agent.ok("checkpoint", "1/2", "half")
    agent.ok("release")

    assert rusty.refs("refs/harness/before/") == rusty.refs() == []
    assert set(CACHES) <= set(rusty.files)


def test_a_rule_with_an_exclamation_mark_wins_wherever_it_stands(project: Project, agent: Agent) -> None:
    project.git("config", "core.excludesFile", str(put(project.top / "../mine", "!node_modules\n")))
    put(project.top / ".git/info/exclude", "!venv\n")
    put(project.top / ".gitignore", "!.tox\n")
    put(project.top / "fixtures/.gitignore", "!target\n")
    put(project.top / "fixtures/Cargo.toml", "[package]\n")
    project.commit()
    begin(agent)
    for name in ("fixtures/node_modules/a", "venv/b", ".tox/c", "fixtures/target/d", ".venv/e", "done"):
        project.put(name)

    agent.ok("finish")

    taken = {"fixtures/node_modules/a", "venv/b", ".tox/c", "fixtures/target/d", "done"}
    assert taken <= set(project.in_commit())
    assert ".venv/e" not in project.in_commit()


@pytest.mark.parametrize("how", ["included", *for_release("the default place", "configured")])
def test_what_the_user_ignores_everywhere_stays_ignored(
    project: Project, agent: Agent, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = project.top.parent
    if how == "the default place":
        monkeypatch.setenv("XDG_CONFIG_HOME", str(mine))
        put(mine / "git" / "ignore", "*.swp\n")
    elif how == "configured":
        project.git("config", "core.excludesFile", str(put(mine / "rules", "*.swp\n")))
    else:
        rules = put(mine / "rules", "*.swp\n")
        setting = put(mine / "more", f"[core]\nexcludesFile = {rules}\n")
        project.git("config", "include.path", str(setting))
    begin(agent)
    agent.finishes({"a.swp": "x\n", ".DS_Store": "x\n", "done": "x\n"})

    assert project.in_commit() == ["done", "tracked.txt"]


def test_what_is_called_like_a_cache_is_work_where_it_is_none(project: Project, agent: Agent) -> None:
    """A `target` where no crate is, a file, and what the base tracks."""
    project.commit(files={"node_modules/ours/index.js": "old\n"})
    begin(agent)
    project.put("node_modules/ours/index.js", "new\n")
    project.put("target/release.md")
    project.put("venv", "a program\n")
    project.put("done")

    agent.ok("finish")

    assert {"done", "target/release.md", "venv"} <= set(project.in_commit())
    assert project.git("show", "HEAD:node_modules/ours/index.js") == "new"


def test_what_an_attempt_hides_by_its_own_rules_is_still_found_beside_caches(
    rusty: Project, agent: Agent
) -> None:
    """Only what the attempt itself has ignored goes with it."""
    fill(rusty)
    begin(agent)
    rusty.put(".gitignore", "made.txt\n")
    rusty.put("made.txt")

    agent.fails(1, "finish")

    assert "made.txt" not in rusty.files
    assert set(CACHES) <= set(rusty.files)


def test_a_linked_work_tree_knows_them_too(project: Project) -> None:
    worker = own_work_tree(project, "beside")
    project.configure(concurrency_mode="concurrent")
    begin(worker)
    for name in ("done", "node_modules/x/index.js", "new/Cargo.toml", "new/target/main"):
        put(worker.cwd / name, "x\n")

    worker.ok("finish")

    assert project.in_commit("beside") == ["done", "new/Cargo.toml", "tracked.txt"]


MARKS = ("--assume-unchanged", "--skip-worktree")


@pytest.mark.parametrize("mark", [MARKS[0], *for_release(*MARKS[1:])])
def test_a_claim_is_refused_where_the_user_has_changed_one(project: Project, agent: Agent, mark: str) -> None:
    project.git("update-index", mark, "tracked.txt")
    project.put("tracked.txt", "my local version\n")
    agent.ok("add", "One", "--validate", "true")

    error = agent.fails(8, "claim")["error"]

    assert "tracked.txt" in error["message"]
    assert "git update-index" in error["hint"]
    assert project.read("tracked.txt") == "my local version\n"


@pytest.mark.parametrize("mark", [MARKS[0], *for_release(*MARKS[1:])])
def test_hiding_a_protected_test_helps_neither_this_attempt_nor_the_next(
    project: Project, agent: Agent, mark: str
) -> None:
    for name in ("changed", "deleted"):
        project.put(f"tests/{name}.sh", "exit 1\n")
    project.commit()
    begin(agent, "sh tests/changed.sh", "--protect", "tests/**")
    project.git("update-index", mark, "tests/changed.sh", "tests/deleted.sh")
    project.put("tests/changed.sh", "exit 0\n")
    (project.top / "tests/deleted.sh").unlink()

    said = agent.fails(1, "finish")["message"]
    assert ("tests/changed.sh" in said, "tests/deleted.sh" in said) == (True, True)
    assert project.read("tests/changed.sh") == project.read("tests/deleted.sh") == "exit 1\n"
    agent.works(code=1)


@pytest.mark.parametrize("mark", MARKS)
def test_what_an_attempt_makes_of_one_is_committed(project: Project, agent: Agent, mark: str) -> None:
    project.git("update-index", mark, "tracked.txt")
    begin(agent, "grep -q two tracked.txt")
    agent.finishes({"tracked.txt": "two\n"})

    assert project.git("show", "HEAD:tracked.txt") == "two"


def test_work_outside_of_a_sparse_checkout_is_committed_and_the_rest_of_it_stays_out(
    project: Project, agent: Agent
) -> None:
    project.commit(files={"in/a": "a\n", "out/b": "b\n", "out/c": "c\n"})
    project.git("sparse-checkout", "set", "in")
    begin(agent, "grep -q changed out/b")
    agent.finishes({"out/b": "wrong\n", "in/a": "wrong\n"}, code=1)

    assert project.read("in/a") == "a\n"
    assert not (project.top / "out/c").exists()
    assert project.git("show", f"{project.refs()[0]}:out/b") == "wrong"
    agent.works({"out/b": "changed\n"})
    assert project.git("show", "HEAD:out/b") == "changed"
    assert project.git("show", "HEAD:out/c") == "c"
    assert not (project.top / "out/c").exists()
