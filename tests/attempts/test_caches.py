"""Caches and environments that no rule of the project names: no attempt commits, keeps or removes them."""

from __future__ import annotations

import pytest

from tests.conftest import for_release
from tests.system.git.gitrepo import put
from tests.verbs.project import Agent, Project, begin, own_work_tree

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
    project.git("config", "core.excludesFile", str(project.put("../mine", "!node_modules\n")))
    project.put(".git/info/exclude", "!venv\n")
    project.put(".gitignore", "!.tox\n")
    project.put("fixtures/.gitignore", "!target\n")
    project.put("fixtures/Cargo.toml", "[package]\n")
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
        put(mine / "git/ignore", "*.swp\n")
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


def test_what_an_attempt_hides_is_still_found_beside_caches(rusty: Project, agent: Agent) -> None:
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
