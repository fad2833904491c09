"""Every agent is known by its own signs, on a terminal too; one without signs by the session it opened."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from harness_lib.agents import registry
from harness_lib.loop import runtime
from harness_lib.system.processes import owner
from tests.run_to_end import run_to_end
from tests.verbs.project import Project, begin

# What a command shows is copied to standard output by `pty` itself; the answers come on standard error.
PROGRAM = """
import json, os, pty, sys
answers = []
for argv in json.load(sys.stdin):
    said = []
    def read(fd):
        said.append(os.read(fd, 4096))
        return said[-1]
    code = os.waitstatus_to_exitcode(pty.spawn(argv, read))
    answers.append([code, b"".join(said).decode("utf-8", "replace")])
json.dump(answers, sys.stderr)
"""


def types(name: str, place: Path, cwd: Path, *commands: tuple[str, ...], **env: str) -> list[tuple[int, str]]:
    """Let a process called `name` type `harness COMMAND` for each; return exit codes and what was shown."""
    program = place / name
    if not program.exists():
        program.symlink_to(os.path.realpath(sys.executable))
    typed = [[sys.executable, "-m", "harness_lib", *words] for words in commands]
    done = run_to_end(
        [program, "-I", "-S", "-c", PROGRAM],
        cwd=cwd,
        env={**os.environ, **env},
        stdin=json.dumps(typed),
        check=True,
    )
    return [(code, said) for code, said in json.loads(done.stderr)]


NAMES = sorted({*registry.ADAPTERS, *registry.HOSTS, *registry.WITHOUT_HOOKS})
WHO = "import os; from harness_lib.system.processes import owner; print(owner.in_agent(os.environ))"
LAX = ("edit", "task-001", "--validate", "true")


def variables(name: str) -> dict[str, str]:
    """Return what the agent sets for its commands; nothing for one that is known by its process."""
    return dict.fromkeys(registry.SIGNS[name].variables[:1], "1")


def program(name: str) -> str:
    """Return what the process of the agent is called."""
    return next(iter(registry.SIGNS[name].programs), f"{name}-cli")


@pytest.mark.parametrize("name", NAMES)
def test_an_agent_is_known_by_each_of_its_signs(name: str, tmp_path: Path) -> None:
    signs = registry.SIGNS[name]

    assert signs.name == name
    assert signs.variables or signs.programs
    assert {signs.session} <= {"", *signs.variables, "CLAUDE_CODE_SESSION_ID"}
    for key in signs.variables:
        assert owner.in_agent({key: "1"}) == name
        assert owner.in_agent({key: ""}) is None
        assert owner.without_agent({key: "1", "PATH": "/bin"}) == {"PATH": "/bin"}
    for called in signs.programs:
        process = tmp_path / called
        process.symlink_to(os.path.realpath(sys.executable))
        ask = f"import subprocess; subprocess.run([{sys.executable!r}, '-c', {WHO!r}], check=True)"
        done = subprocess.run([process, "-I", "-S", "-c", ask], capture_output=True, text=True, check=True)
        assert done.stdout == f"{name}\n"


def test_nobody_else_has_signs() -> None:
    assert sorted(registry.SIGNS) == NAMES
    assert registry.SIGNS["hs"].session == runtime.SESSION_VARIABLE


def test_an_agent_that_names_itself_as_agreed_is_no_person() -> None:
    assert owner.in_agent({"AI_AGENT": "goose\n"}) == "goose"
    assert owner.in_agent({"AI_AGENT": "claude-code_2_agent", "CLAUDECODE": "1"}) == "claude"
    assert owner.without_agent({"AI_AGENT": "goose"}) == {}


def some(names: Iterable[str], *now: str) -> list[Any]:
    """Let all but the names in `now` wait for a release: verbs ask `owner.in_agent`, whoever it names."""
    return [pytest.param(name, marks=[] if name in now else pytest.mark.release) for name in names]


@pytest.mark.parametrize("name", some(NAMES, "cursor"))
def test_no_agent_on_a_terminal_sets_its_own_check(name: str, project: Project, tmp_path: Path) -> None:
    begin(project.agent(), "false")
    (project.top / ".git/harness/trust.json").unlink()
    before = project.file.read_bytes()

    said = types(program(name), tmp_path, project.top, LAX, ("trust", "--yes"), ("trust",), **variables(name))

    assert [code for code, _ in said] == [8, 8, 8], said
    assert f"not for {name}" in said[1][1]
    assert project.file.read_bytes() == before
    assert not (project.top / ".git/harness/trust.json").exists()


def test_an_agent_in_no_list_is_known_by_the_session_that_it_opened(project: Project, tmp_path: Path) -> None:
    project.agent("person").ok("add", "One", "--validate", "false")
    more = ("edit", "--max-sessions", "99")
    works = [("claim",), LAX, more, ("release",), LAX, ("stop",), LAX]

    said = types("brand-new-agent", tmp_path, project.top, *works)

    assert [code for code, _ in said] == [0, 8, 8, 0, 8, 0, 8], said
    assert all("brand-new-agent" in words for code, words in said if code)
    assert project.task()["validation"]["command"] == "false"

    trust = project.top / ".git/harness/trust.json"
    trust.unlink()
    said = types("brand-new-agent", tmp_path, project.top, ("start",), ("trust", "--yes"), HARNESS_TRUST="1")
    assert [code for code, _ in said] == [0, 8], said
    assert not trust.exists()


TERMINALS = ["tmux", "sshd-session", "Relay(42)", "tini", "node"]


@pytest.mark.parametrize("terminal", some(TERMINALS, "tmux"))
def test_the_user_by_hand_corrects_the_check(project: Project, tmp_path: Path, terminal: str) -> None:
    """Their commands have one ancestor, too, that owns the session: the terminal, also that of an editor."""
    project.agent("person").ok("add", "One", "--validate", "false")

    works = [("claim",), LAX, ("finish",)]
    said = types(terminal, tmp_path, project.top, *works, TERM_PROGRAM="vscode")

    assert [code for code, _ in said] == [0, 0, 0], said
