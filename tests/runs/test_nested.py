"""Repositories inside a work tree: none is merged that nobody else has, and none is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put, sh

COMMIT = "git add -A && git -c user.name=a -c user.email=a@b commit -qm s"
NEST = "mkdir app && cd app && git init -q && echo code > main.txt"
PLAIN = "mkdir -p app && echo code > app/main.txt"


def links(workshop: Workshop, commit: str = "main") -> list[str]:
    """Return what `commit` names of other repositories."""
    rows = sh(workshop.top, "ls-tree", "-r", commit).splitlines()
    return [row for row in rows if row.startswith("160000")]


def aside(workshop: Workshop) -> list[Path]:
    return sorted((workshop.home / "set-aside").glob("*/*"))


@pytest.mark.parametrize(
    "made",
    [
        NEST,
        f"{NEST} && {COMMIT}",
        f"({NEST} && {COMMIT}) && {COMMIT}",
        f"({NEST} && {COMMIT}) && git add app",
    ],
    ids=["without a commit", "with one", "that the agent has committed", "that the agent has staged"],
)
def test_a_repository_of_its_own_goes_back_and_lands_as_plain_files(
    workshop: Workshop, tmp_path: Path, made: str
) -> None:
    brief = tmp_path / "brief"
    workshop.add("App", "test -f app/main.txt", do=f"once sh {made}")
    script = workshop.top.parent / "second.sh"
    put(
        script,
        f"cat > {brief}.new\nif [ -e {brief} ]; then {PLAIN}; else {made}; fi\nmv {brief}.new {brief}\n",
    )

    said = workshop.run(agent=f"sh {script}")

    assert said.returncode == 0, said.stdout + said.stderr
    assert workshop.task("task-001")["attempts"] == 0
    assert "handed back: The work passed its check, but cannot be merged. A repository of its own: 'app'" in (
        brief.read_text()
    )
    assert "without its .git" in brief.read_text()
    assert sh(workshop.top, "show", "main:app/main.txt") == "code"
    (kept,) = aside(workshop)
    assert str(kept) in brief.read_text()
    assert (kept / "app" / "main.txt").read_text() == "code\n"
    assert (kept / "app" / ".git").is_dir()
    workshop.done_is_done()
    workshop.nothing_is_left_over()


def test_an_agent_that_insists_on_one_has_failed_and_nothing_is_merged(workshop: Workshop) -> None:
    workshop.add("App", "test -f app/main.txt", "--max-attempts", "1", do=f"sh {NEST} && {COMMIT}")

    said = workshop.run()

    assert said.returncode == 9, said.stdout + said.stderr
    assert "'app'" in workshop.task("task-001")["error_log"][0]
    assert links(workshop) == []
    assert [(kept / "app" / "main.txt").read_text() for kept in aside(workshop)] == ["code\n"] * 3
    workshop.nothing_is_left_over()


def test_work_beside_one_is_there_for_the_next_agent(workshop: Workshop) -> None:
    workshop.add("Beside", "grep -q done f", do=f"write f done\nonce sh ({NEST} && {COMMIT}) && {COMMIT}")

    said = workshop.run()

    assert said.returncode == 0, said.stdout + said.stderr
    assert workshop.task("task-001")["attempts"] == 0
    assert links(workshop) == []
    workshop.done_is_done()
    workshop.nothing_is_left_over()


def test_one_that_git_ignores_is_nobodys_concern(workshop: Workshop) -> None:
    put(workshop.top / ".gitignore", "node_modules/\n")
    sh(workshop.top, "commit", "-qam", "Ignore")
    workshop.add(
        "Ignored",
        "grep -q done f",
        do="write f done\nsh mkdir -p node_modules/x && git -C node_modules/x init -q",
    )

    said = workshop.run()

    assert said.returncode == 0, said.stdout + said.stderr
    assert (workshop.task("task-001")["attempts"], "handed back" in said.stdout) == (0, False)
    assert aside(workshop) == []
    workshop.nothing_is_left_over()


def test_one_that_only_the_check_makes_is_nobodys_concern(workshop: Workshop) -> None:
    workshop.add(
        "Tested", "grep -q done f && mkdir -p t && git -C t init -q", "--max-attempts", "1", do="write f done"
    )

    said = workshop.run("--no-final-check")

    assert said.returncode == 0, said.stdout + said.stderr
    assert workshop.statuses() == {"task-001": "completed"}


def test_a_chat_that_recovers_an_attempt_of_a_killed_run_merges_none_either(
    workshop: Workshop, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    name = workshop.add(
        "App", "test -f app/main.txt", do=f"sh {NEST} && {COMMIT}\ntouch {started}\nsleep 600"
    )
    workshop.start()
    workshop.wait_for("the agent has made it", started.exists)
    workshop.cut_power()

    said = workshop.ok("start")

    assert links(workshop) == []
    assert workshop.task(name)["handback"]["rounds"] == 1, said
    (kept,) = aside(workshop)
    assert (kept / "app" / "main.txt").read_text() == "code\n"
