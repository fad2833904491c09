"""Repositories inside a work tree: none is merged that nobody else has, and none is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put, sh

COMMIT = "git add -A && git -c user.name=a -c user.email=a@b commit -qm s"
NEST = "mkdir {0} && cd {0} && git init -q && echo code > main.txt"
PLAIN = "mkdir -p {0} && echo code > {0}/main.txt"
MADE = {
    "bare": NEST,
    "begun": f"{NEST} && {COMMIT}",
    "committed": f"({NEST} && {COMMIT}) && {COMMIT}",
    "staged": f"({NEST} && {COMMIT}) && git add {{0}}",
}


def links(workshop: Workshop, commit: str = "main") -> list[str]:
    """Return what `commit` names of other repositories."""
    rows = sh(workshop.top, "ls-tree", "-r", commit).splitlines()
    return [row for row in rows if row.startswith("160000")]


def aside(workshop: Workshop, name: str) -> list[Path]:
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
        (kept,) = aside(workshop, name)
        assert task["attempts"] == 0
        assert f"cannot be merged. A repository of its own: '{name}'" in brief
        assert "without its .git" in brief
        assert str(kept.parent) in brief
        assert (kept / "main.txt").read_text() == "code\n"
        assert (kept / ".git").is_dir()
        assert sh(workshop.top, "show", f"main:{name}/main.txt") == "code"
    workshop.all_is_well()


@pytest.mark.release
def test_an_agent_that_insists_on_one_has_failed_unless_ignored(workshop: Workshop) -> None:
    """What stands beside one is there for the next agent; git ignores another, the check makes a third."""
    put(workshop.top / ".gitignore", "node_modules/\n")
    sh(workshop.top, "commit", "-qam", "Ignore")
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
    assert [(kept / "main.txt").read_text() for kept in aside(workshop, "app")] == ["code\n"] * 3
    assert len(aside(workshop, "lib")) == 1
    assert aside(workshop, "x") == []
    workshop.nothing_is_left_over()


def test_a_chat_that_recovers_a_killed_run_merges_none_either(workshop: Workshop, tmp_path: Path) -> None:
    started, made = tmp_path / "started", MADE["begun"].format("app")
    name = workshop.add("App", "test -f app/main.txt", do=f"sh {made}\ntouch {started}\nsleep 600")
    workshop.start()
    workshop.wait_for("the agent has made it", started.exists)
    workshop.cut_power()

    said = workshop.ok("start")

    assert links(workshop) == []
    assert workshop.task(name)["handback"]["rounds"] == 1, said
    (kept,) = aside(workshop, "app")
    assert (kept / "main.txt").read_text() == "code\n"
