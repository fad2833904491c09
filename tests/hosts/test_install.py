"""Installed by the real skills CLI, as a plugin, or by its own verb: the clients take the hooks."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, for_release
from tests.hosts.agents import (
    DONE,
    TIRED,
    follows_the_page,
    launcher,
    listed_page,
    loads_the_page,
    stops_after_each_task,
)
from tests.hosts.chores import WORK, assert_all_done, one_task, three_tasks
from tests.hosts.claude import Claude
from tests.hosts.codex import Codex
from tests.hosts.machine import Machine
from tests.hosts.model import Model
from tests.hosts.talk import Request, Say, Script


@pytest.mark.release
@pytest.mark.parametrize("mode", ["symlink", "copy"])
@pytest.mark.parametrize("scope", ["project", "global"])
def test_claude_takes_the_list_to_its_end(
    claude: Claude, model: Model, machine: Machine, published: Path, scope: str, mode: str
) -> None:
    """Three tasks, a dependency and a failing attempt, by following `next:` alone, and so never held."""
    flags = [*(["-g"] if scope == "global" else []), *(["--copy"] if mode == "copy" else [])]
    machine.skills_add(published, *flags)
    home = machine.home if scope == "global" else machine.project
    before = _files(home / ".claude/skills/harness")
    claude.trust(machine.project)
    three_tasks(machine)
    model.play(follows_the_page(WORK))

    ran = claude("/harness run")

    assert (ran.code, ran.result, ran.blocks()) == (0, DONE, [])
    assert_all_done(machine)
    # The next `skills add` deletes the folder, and Codex distrusts a plugin that changes.
    assert _files(home / ".claude/skills/harness") == before


@pytest.mark.release
def test_the_page_brings_hooks(claude: Claude, model: Model, machine: Machine, published: Path) -> None:
    """A project's plugin waits for the user's trust; the hooks of a page that was typed hold without it."""
    machine.skills_add(published)
    one_task(machine)
    model.play(stops_after_each_task(WORK))

    ran = claude("/harness run")

    assert ran.hooks("SessionStart") == []
    assert len(ran.blocks()) == 1
    assert machine.statuses == ["completed"]


@pytest.mark.release
@pytest.mark.parametrize(
    ("name", "agent", "tool", "argument"),
    [("gemini", "gemini-cli", "activate_skill", "name"), ("copilot", "github-copilot", "skill", "skill")],
)
def test_where_no_slash_command_loads_it_the_page_is_enough_for_the_whole_list(
    request: pytest.FixtureRequest, model: Model, machine: Machine, published: Path, *,
    name: str, agent: str, tool: str, argument: str,
) -> None:  # fmt: skip
    """Agents in Gemini and Copilot ask their client for the page."""
    client = request.getfixturevalue(name)
    machine.skills_add(published, agents=[agent])
    one_task(machine)
    model.play(loads_the_page(tool, argument, follows_the_page(WORK)))

    assert DONE in client("/harness run").check().out
    assert machine.statuses == ["completed"]


def _files(folder: Path) -> dict[str, int]:
    """Return every file in `folder` with its time of change."""
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*")}


# -- the plugin route: from the marketplace in this repository, in both clients that have one


@pytest.mark.release
def test_claude_takes_the_plugin(claude: Claude, model: Model, machine: Machine, published: Path) -> None:
    """Installed as a plugin, `/harness run` is known and the hooks fire, each once."""
    claude.plugin("marketplace", "add", str(published))
    claude.plugin("install", "harness@harness")
    one_task(machine)
    model.play(stops_after_each_task(WORK))

    ran = claude("/harness run")

    assert (ran.result, len(ran.blocks()), len(ran.hooks("Stop"))) == (TIRED, 1, 2)
    assert machine.statuses == ["completed"]


@pytest.mark.release
def test_claude_code_finds_the_plugin_valid(claude: Claude, published: Path) -> None:
    """`claude plugin validate` has nothing against the manifest, the hooks and the page."""
    assert "error" not in claude.plugin("validate", str(published)).out.lower()


@pytest.mark.release
def test_codex_takes_the_plugin(codex: Codex, model: Model, machine: Machine, published: Path) -> None:
    """Installed as a plugin, the skill leads to the one page, and the hooks hold the agent to the end."""
    codex.plugin("marketplace", "add", str(published))
    codex.plugin("add", "harness@harness")
    # README names this place.
    (launcher,) = (codex.home / "plugins/cache/harness/harness").glob("*/bin/harness")
    machine.run(launcher, "--version").check()
    one_task(machine)

    def follows_the_pointer(request: Request) -> Script:
        pointer = Path(listed_page(request.everything))
        assert "../../../SKILL.md" in request.said_by("user")
        page = (pointer.parent / "../../../SKILL.md").resolve()
        request = yield request.shell(f"echo {page}; cat {page}")
        assert "## The loop" in request.last
        yield from stops_after_each_task(WORK)(request)

    model.play(follows_the_pointer)

    codex("$harness:harness run").check()

    assert any("hook_prompt" in request.said_by("user") for request in model.requests)
    assert machine.statuses == ["completed"]


def test_the_pointer_of_codex_says_what_the_page_says() -> None:
    """Name and description stand in two files, word by word the same."""
    pointer, page = (
        (CHECKOUT / name).read_text().splitlines()[1:3]
        for name in (".codex-plugin/skills/harness/SKILL.md", "SKILL.md")
    )
    assert pointer == page


# -- `harness hooks install` in the real clients: what it writes is what they load, and it holds them


def would_rather_stop(request: Request) -> Script:
    """Open a session and want to stop; when that is refused, do the task and stop."""
    harness = launcher(request.everything)
    yield request.shell(f"{harness} start")
    request = yield Say(TIRED)
    assert f"{harness} claim" in request.everything, "nobody has held it"
    final = f"{harness} validate --all --committed"
    yield request.shell(f"{harness} claim && echo one > one && {harness} finish && {final}")
    yield Say(DONE)


@pytest.mark.parametrize(
    ("name", "scope"),
    # What the others are told and answer is recorded in tests/hookio; test_claude.py holds Claude Code.
    [
        ("codex", "user"),
        *for_release(("claude", "project"), ("gemini", "user"), ("copilot", "project")),
    ],
)
def test_installed_hooks_speak_at_the_start_and_hold_to_the_end(
    request: pytest.FixtureRequest, machine: Machine, model: Model, name: str, scope: str
) -> None:
    """There is no skill here: what to type is known from the hooks alone."""
    client = request.getfixturevalue(name)
    one_task(machine)
    env = client.env if name == "codex" else {}
    said = machine.harness("hooks", "install", "--agent", name, "--scope", scope, env=env).check()
    assert "What to do in " in said.out
    model.play(would_rather_stop)

    # Copilot asks before a command outside of the project is run, and nobody is there to answer.
    flags = ["--allow-all-paths"] if name == "copilot" else []
    ran = client("Work through the list.", *flags).check()

    assert DONE in ran.out
    assert machine.statuses == ["completed"]
    assert not machine.enable_flag.exists()


@pytest.mark.release
def test_the_doctor_sees_what_a_sandbox_forbids_and_its_cure_helps(codex: Codex, machine: Machine) -> None:
    """Without its cure nothing could be committed."""
    one_task(machine)
    doctor = (CHECKOUT / "bin/harness", "doctor", "--json")
    sandbox = ("codex", "sandbox", "-c", 'sandbox_mode="workspace-write"')
    env = {**codex.env, "CODEX_SESSION_ID": "as-in-a-session"}

    closed = machine.run(*sandbox, "--", *doctor, env=env)
    (said,) = [each for each in json.loads(closed.out)["found"] if "nothing can be committed" in each["what"]]
    options = shlex.split(said["cure"].partition(": codex ")[2])
    opened = machine.run(*sandbox, *options, "--", *doctor, env=env).check()

    assert closed.code == 1
    assert "nothing can be committed" not in opened.out
