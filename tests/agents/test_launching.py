"""How each agent is started: without the user to ask."""

from __future__ import annotations

import pytest

from harness_lib.agents.adapter import Adapter
from harness_lib.agents.command import adapter as command
from harness_lib.agents.registry import ADAPTERS, named
from harness_lib.errors import UsageError

EVERY = [*ADAPTERS.values(), command("my-agent --yes")]


def test_they_stand_in_the_order_of_preference() -> None:
    assert list(ADAPTERS) == ["claude", "codex", "gemini", "copilot", "opencode", "hs"]


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UsageError) as refused:
        named("clyde")

    assert "clyde" in refused.value.message
    assert all(name in str(refused.value.hint) for name in ADAPTERS)


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.name)
def test_model_and_own_arguments_are_passed_on(one: Adapter) -> None:
    launch = one.launch("some-model", ("--own", "word"))

    assert launch.argv[0] == one.program
    at = launch.argv.index("--own")
    assert launch.argv[at : at + 2] == ("--own", "word")
    assert "some-model" in (*launch.argv, *launch.env.values())
    assert one.title
    assert "--model" not in one.launch(None, ()).argv, "without one the agent chooses"


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
    argv = named("codex").launch(None, extra).argv

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
    assert ours in named(agent).launch(None, ()).argv
    assert ours not in named(agent).launch(None, narrower).argv


def test_claude_code_is_told_what_a_task_may_cost_and_waits_for_its_background_agents() -> None:
    launch = named("claude").launch(None, ("--own",))

    assert launch.command(0.5)[-2:] == ("--max-budget-usd", "0.500000")
    assert launch.command() == launch.argv
    assert launch.env["CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS"] == "0"
    assert "0.500000" not in named("codex").launch(None, ()).command(0.5), "it knows no limit of cost"


@pytest.mark.parametrize("own", [("--max-budget-usd", "9"), ("--max-budget-usd=9",)])
def test_a_limit_that_the_user_gives_the_agent_stays_theirs(own: tuple[str, ...]) -> None:
    assert named("claude").launch(None, own).command(0.5)[-len(own) :] == own


def test_copilot_is_given_a_file_for_what_it_has_used_up_and_the_directory_of_harness() -> None:
    own, copilot = ("--usage-output-file=mine",), named("copilot")

    assert copilot.launch(None, ()).command(0.5, "/u.json")[-2:] == ("--usage-output-file", "/u.json")
    assert copilot.launch(None, own).command(None, "/u.json")[-1:] == own
    assert "/u.json" not in named("codex").launch(None, ()).command(None, "/u.json")
    # Its guard would deny the commands for notes and checkpoints that are in its brief.
    assert copilot.launch(None, ()).command(beside="/h/bin")[-2:] == ("--add-dir", "/h/bin")
    assert "/h/bin" not in named("claude").launch(None, ()).command(beside="/h/bin")
