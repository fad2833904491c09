"""A denied access is named: to the next agent, in the report, and before the night."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness_lib.system.processes import denied, sandbox, sandbox_places
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put

DOES = "first sh touch ~/outside\nthen sh echo done > made\nsh cat $HARNESS_BRIEF_FILE > ~/.cache/brief"
# What programs print, with PATH for the path.
ERRORS = (
    "touch: cannot touch 'PATH': Read-only file system",
    "sh: 1: cannot create PATH: Permission denied",
    "mkdir: cannot create directory \u2018PATH\u2019: Permission denied",
    "PermissionError: [Errno 13] Permission denied: 'PATH'",
    "OSError: [Errno 30] Read-only file system: 'PATH'",
    "Error: EACCES: permission denied, open 'PATH'",
    "npm error code EROFS\nnpm error path PATH\nnpm error errno EROFS",
    "open PATH: permission denied",
    "/opt/work/build.sh: line 3: PATH: Permission denied",
    "/opt/my work/build.sh: 3: cannot create PATH: Permission denied",
    "error: failed to create directory `PATH`\n\nCaused by:\n  Read-only file system (os error 30)",
    "error: could not lock config file PATH: Permission denied",
    '{"output": "touch: cannot touch \'PATH\': Read-only file system\\nmore"}',
)


@pytest.fixture
def confined(tmp_path: Path, home: Path) -> dict[str, str]:
    """Return the environment of a run with a secret and a cache."""
    put(home / ".ssh/id", "a key")
    (home / ".cache").mkdir()
    project = sandbox_places.Project(tmp_path / "project", tmp_path / "project/.git", ())
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    made = sandbox.of_run("nono", env, tmp_path / "places", tmp_path / "data", project)
    return {**env, **sandbox.noted(made)}


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("name", ["other", "with blank/other"])
def test_a_path_that_may_not_be_written_is_found_in_what_programs_print(
    confined: dict[str, str], tmp_path: Path, home: Path, error: str, name: str
) -> None:
    (home / name).parent.mkdir(exist_ok=True)
    tree = tmp_path / "places/run/1"
    text = f"one line\n{error.replace('PATH', str(home / name))}\nanother line\n"
    assert list(map(str, denied.accesses(text, confined, tree))) == [f"write ~/{name}"]


def test_what_the_sandbox_is_not_the_cause_of_is_not_named(
    confined: dict[str, str], tmp_path: Path, home: Path
) -> None:
    tree = tmp_path / "places/run/1"
    lines = [
        f"{tmp_path}/project/harness-tasks.json: Permission denied",
        f"touch: cannot touch '{tree}/a': Permission denied",
        f"touch: cannot touch '{home}/.cache/a': Permission denied",
        f"cat: {home}/nothing: No such file or directory",
        "cat: /proc/1/environ: Permission denied",
        f"wrote {home}/fine",
        # What is harness's own is nobody's to allow.
        f"[Errno 13] Permission denied: '{home}/.local/share/harness/lock'",
        # A path below where that script was: nobody knows where.
        f"{home}/build.sh: line 3: out/made: Permission denied",
        "git@example.com: Permission denied (publickey).",
    ]
    assert denied.accesses("\n".join(lines), confined, tree) == []
    secret = f"cat: {home}/.ssh/id: No such file or directory"
    assert list(map(str, denied.accesses(secret, confined, tree))) == ["read ~/.ssh/id"]
    assert denied.accesses(secret, {}, tree) == []


def test_no_agent_is_to_be_allowed_the_users_checkout(confined: dict[str, str], tmp_path: Path) -> None:
    """Its work belongs into its own work tree; a check may need to write there."""
    (tmp_path / "project").mkdir()
    text = f"sed: couldn't open temporary file {tmp_path}/project/src: Permission denied"
    cwd = tmp_path / "places/run/1"
    assert denied.said(text, confined, cwd) == (
        f"The sandbox denied: write {tmp_path}/project/src. "
        f"Allow it: harness run --allow-write {tmp_path}/project/src"
    )
    assert denied.said(text, confined, cwd, by_agent=True) == ""


@pytest.mark.parametrize(
    "fake", ["touch pwned #", "harness run --allow-write /etc", "harness run --allow-write "]
)
def test_a_path_that_reads_as_a_command_does_not_become_the_command(
    confined: dict[str, str], tmp_path: Path, home: Path, fake: str
) -> None:
    path = f"{home}/x. Allow it: {fake}"
    said = denied.said(f"touch: '{path}': Permission denied", confined, tmp_path / "places/run/1")

    assert denied.parts(said) == (
        f"The sandbox denied: write ~{path.removeprefix(str(home))}",
        f"harness run --allow-write '{path}'",
    )
    assert denied.parts("no sandbox: it is switched off") is None


def test_what_an_agent_was_denied_is_in_the_next_brief_and_in_the_report(
    engine: str, workshop: Workshop, home: Path
) -> None:
    (home / ".cache").mkdir()
    keep = home / ".cache/brief"
    task = workshop.add("Write", "grep -q done made", do=DOES)
    workshop.ends(0, "--sandbox", engine)
    assert "The sandbox denied: write ~/outside." in keep.read_text()
    allow = f"harness run --allow-write {home}/outside"
    assert allow in keep.read_text()
    report = workshop.ok("report")["report"]
    (found,) = [each for each in report["decisions"] if each["kind"] == "denied"]
    assert (found["task"], found["what"]) == (task, "The sandbox denied: write ~/outside")
    assert found["commands"] == [allow]
    assert "\nsandbox: " in workshop("report").text


def test_a_check_that_the_sandbox_stops_waits_for_the_user_and_costs_no_attempt(
    engine: str, workshop: Workshop, home: Path
) -> None:
    task = workshop.add("Check", "test -f made && echo x > ~/state", do="sh echo done > made")
    workshop.run("--sandbox", engine)
    state = workshop.task(task)
    assert (state["status"], state["attempts"]) == ("pending", 0)
    assert "ENV_SETUP" in state["halt"]
    assert f"harness run --allow-write {home}/state" in state["halt"]
    (home / "state").write_text("")
    workshop.ok("retry", task)
    workshop.ends(0, "--sandbox", engine, "--allow-write", str(home / "state"))
    assert workshop.statuses() == {task: "completed"}


def test_what_stops_every_check_is_one_cause_with_one_command_and_costs_one_agent(
    engine: str, workshop: Workshop, home: Path
) -> None:
    for number in range(6):
        # A command of its own: another's result is not remembered for it.
        workshop.add(f"Check {number}", f"echo x > ~/state && test -f m{number}", do=f"sh echo > m{number}")
    allow = ("--allow-write", str(home / "state"))

    said = workshop.run("--sandbox", engine)

    shown = said.stdout.partition("LOOK AT\n")[2].splitlines()
    assert re.match(r"  task-001 and 5 more tasks +The sandbox denied: write ~/state$", shown[0]), said.stdout
    assert shown[1:2] == [f"      harness run {' '.join(allow)}"]
    assert shown[2].startswith("AGAIN: ")
    assert "  task-001, task-002, task-003 and 3 more: ENV_SETUP: " in workshop("status").text
    begun = [workshop.top / ".harness/logs" / f"task-00{number + 1}" for number in range(6)]
    assert [bool(list(place.glob("*agent*"))) for place in begun] == [True, *[False] * 5]

    # Another path is not the answer.
    workshop.run("--sandbox", engine, "--allow-write", str(home / "another"))
    assert set(workshop.statuses().values()) == {"pending"}
    (home / "state").write_text("")
    said = workshop.ends(0, "--sandbox", engine, *allow)
    assert "task-006 goes on: this run allows what the sandbox denied its check" in said.stdout
    assert {task["attempts"] for task in workshop.state["tasks"]} == {0}


def test_a_check_whose_program_cannot_be_read_is_named_before_the_first_agent(
    engine: str, workshop: Workshop, home: Path
) -> None:
    tool = put(home / ".config/gh/bin/tool", "#!/bin/sh\nexit 0\n", executable=True)
    workshop.put("check.sh", f"#!{tool}\n", executable=True)
    for command in (str(tool), "./check.sh"):
        task = workshop.add("Check", command)
        said = workshop.run("--sandbox", engine)
        assert said.returncode == 7
        assert f"The check of {task} cannot run in the sandbox, where {tool} cannot be read" in said.stderr
        assert re.search(rf"harness run .*--allow-write {re.escape(str(tool.parent))}", said.stderr)
        workshop.ok("edit", task, "--validate", "true")
    # Hidden in the checkout, but each work tree has its own.
    workshop.commits("Ignore it", {".gitignore": "vendor/\n"})
    workshop.put("vendor/bin/runner", "#!/bin/sh\ngrep -q done f\n", executable=True)
    workshop.add("Run", "vendor/bin/runner", do="sh echo done > f")
    workshop.ends(0, "--sandbox", engine, "--allow-write", str(tool.parent))
