"""How each agent is started and known by its signs; a new one is one file and its name in the registry."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from harness_lib.agents import registry
from harness_lib.agents.adapter import Adapter
from harness_lib.agents.command import adapter as command
from harness_lib.agents.registry import ADAPTERS, named
from harness_lib.errors import UsageError
from harness_lib.loop import runtime
from harness_lib.system.processes import owner
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
    done = subprocess.run(
        [program, "-I", "-S", "-c", PROGRAM],
        input=json.dumps(typed),
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=True,
    )
    return [(code, said) for code, said in json.loads(done.stderr)]


# -- how each agent is started and known by its signs; a new one is one file and its name in the registry


BRIEF = "Do it.\n" * 100_000
EVERY = [*ADAPTERS.values(), command("my-agent --yes")]


def test_they_stand_in_the_order_of_preference() -> None:
    assert list(ADAPTERS) == ["claude", "codex", "gemini", "copilot", "opencode", "hs"]


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UsageError) as refused:
        named("clyde")

    assert "clyde" in refused.value.message
    assert all(name in str(refused.value.hint) for name in ADAPTERS)


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.name)
def test_the_brief_comes_on_standard_input(one: Adapter) -> None:
    """An argument may not be longer than 128 KB, and everybody on the machine can read it."""
    launch = one.launch(BRIEF)

    assert launch.stdin == BRIEF
    assert not any("Do it." in word for word in launch.argv)


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.name)
def test_model_and_own_arguments_are_passed_on(one: Adapter) -> None:
    launch = one.launch("x", model="some-model", extra=("--own", "word"))

    assert launch.argv[0] == one.program
    at = launch.argv.index("--own")
    assert launch.argv[at : at + 2] == ("--own", "word")
    assert "some-model" in (*launch.argv, *launch.env.values())
    assert one.title


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.name)
def test_without_a_model_the_agent_chooses(one: Adapter) -> None:
    assert "--model" not in one.launch("x").argv


@pytest.mark.parametrize(
    ("extra", "ours"),
    [
        ((), True),
        (("--add-dir", "x"), True),
        (("--sandbox", "danger-full-access"), False),
        (("--sandbox=read-only",), False),
        (("-s", "read-only"), False),
        (("--dangerously-bypass-approvals-and-sandbox",), False),
    ],
)
def test_codex_works_in_a_sandbox_unless_told_otherwise(extra: tuple[str, ...], *, ours: bool) -> None:
    argv = named("codex").launch("x", extra=extra).argv

    assert ("workspace-write" in argv) is ours
    assert argv[-1] == "-"


def test_an_empty_command_is_refused() -> None:
    with pytest.raises(UsageError):
        command("  ")


@pytest.mark.parametrize(
    ("agent", "ours", "narrower"),
    [
        ("claude", "--dangerously-skip-permissions", ("--allowedTools", "Edit Read Bash(make *)")),
        ("claude", "--dangerously-skip-permissions", ("--permission-mode=acceptEdits",)),
        ("gemini", "yolo", ("--approval-mode", "auto_edit")),
        ("copilot", "--allow-all-tools", ("--allow-tool", "write")),
    ],
)
def test_an_agent_may_everything_unless_told(agent: str, ours: str, narrower: tuple[str, ...]) -> None:
    assert ours in named(agent).launch("x").argv
    assert ours not in named(agent).launch("x", extra=narrower).argv


def test_claude_code_is_told_what_a_task_may_cost_and_waits_for_its_background_agents() -> None:
    launch = named("claude").launch("x", extra=("--own",))

    assert launch.command(0.5)[-2:] == ("--max-budget-usd", "0.500000")
    assert launch.command() == launch.argv
    assert launch.env["CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS"] == "0"


@pytest.mark.parametrize("own", [("--max-budget-usd", "9"), ("--max-budget-usd=9",)])
def test_a_limit_that_the_user_gives_the_agent_stays_theirs(own: tuple[str, ...]) -> None:
    assert named("claude").launch("x", extra=own).command(0.5)[-len(own) :] == own


def test_an_agent_that_knows_no_limit_of_cost_is_told_none() -> None:
    assert "0.500000" not in named("codex").launch("x").command(0.5)


def test_an_agent_that_tells_what_it_has_used_up_in_a_file_is_given_one() -> None:
    assert named("copilot").launch("x").command(0.5, "/u.json")[-2:] == ("--usage-output-file", "/u.json")
    own = ("--usage-output-file=mine",)
    assert named("copilot").launch("x", extra=own).command(None, "/u.json")[-1:] == own
    assert "/u.json" not in named("codex").launch("x").command(None, "/u.json")


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
    (project.top / ".git" / "harness" / "trust.json").unlink()
    before = project.file.read_bytes()

    said = types(program(name), tmp_path, project.top, LAX, ("trust", "--yes"), ("trust",), **variables(name))

    assert [code for code, _ in said] == [8, 8, 8], said
    assert f"not for {name}" in said[1][1]
    assert project.file.read_bytes() == before
    assert not (project.top / ".git" / "harness" / "trust.json").exists()


def test_an_agent_in_no_list_is_known_by_the_session_that_it_opened(project: Project, tmp_path: Path) -> None:
    project.agent("person").ok("add", "One", "--validate", "false")
    more = ("edit", "--max-sessions", "99")
    works = [("claim",), LAX, more, ("release",), LAX, ("stop",), LAX]

    said = types("brand-new-agent", tmp_path, project.top, *works)

    assert [code for code, _ in said] == [0, 8, 8, 0, 8, 0, 8], said
    assert all("brand-new-agent" in words for code, words in said if code)
    assert project.task()["validation"]["command"] == "false"

    trust = project.top / ".git" / "harness" / "trust.json"
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


CHECKOUT = Path(__file__).parents[2]
GOOSE = '''
"""Goose."""

from __future__ import annotations

from harness_lib.agents import adapter, stream

SIGNS = adapter.Signs("goose", variables=("GOOSE",), session="GOOSE_SESSION", fields=("gooseId",))
HOOKS = adapter.Host(
    name="goose",
    title="Goose",
    files={"user": (".goose/hooks.json",)},
    events={"Stop": "onHonk"},
    trust={"user": "none is needed."},
    answers={"block": {"honk": adapter.TEXT}},
)


def launch(brief, *, model=None, extra=()):
    return adapter.Launch(("goose", *extra), stdin=brief)


def read(report, line, now):
    return stream.stray(report, line)


ADAPTER = adapter.Adapter("goose", "Goose", "goose", launch, read)
'''
TRY = """
import json, os, sys
from harness_lib.agents import registry
from harness_lib.hookinstall import entries
from harness_lib.hookio import payload
from harness_lib.hookio.context import Answer
from harness_lib.system.processes import owner

host = registry.HOSTS["goose"]
said = payload.Payload("Stop", {"gooseId": "1", "hook_event_name": "onHonk"})
print(json.dumps({
    "agent": owner.in_agent(os.environ),
    "session": owner.agent_session(os.environ),
    "launch": registry.named("goose").launch("do").argv,
    "entries": list(entries.by_event(host)),
    "event": said.event,
    "host": payload.host("", {}, said),
    "answer": payload.speak(Answer("block", "go on"), "Stop", "goose"),
}))
"""


def test_a_new_agent_is_one_file_and_its_name_in_the_registry(tmp_path: Path) -> None:
    for name in ("harness_lib", "hooks"):
        shutil.copytree(CHECKOUT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    agents = tmp_path / "harness_lib" / "agents"
    (agents / "goose.py").write_text(GOOSE, encoding="utf-8")
    registry = agents / "registry.py"
    text = registry.read_text(encoding="utf-8")
    for before, after in (
        ("import claude,", "import claude, goose,"),
        ("AGENTS = (claude,", "AGENTS = (claude, goose,"),
    ):
        assert text.count(before) == 1
        text = text.replace(before, after)
    registry.write_text(text, encoding="utf-8")

    done = subprocess.run(
        [sys.executable, "-c", TRY],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "GOOSE": "1", "GOOSE_SESSION": "honk"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )

    assert done.stderr == ""
    assert json.loads(done.stdout) == {
        "agent": "goose",
        "session": "honk",
        "launch": ["goose"],
        "entries": ["onHonk"],
        "event": "Stop",
        "host": "goose",
        "answer": [{"honk": "go on"}, "", 0],
    }
