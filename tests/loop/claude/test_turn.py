"""The provider `claude` hands whole turns to the installed Claude Code; our gates and an editor are asked."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.conftest import for_release
from tests.hs.acp.client import Editor
from tests.hs.person import person
from tests.loop.claude.conftest import INIT, Json, Stage, answer, asks, call, came_to, result, text
from tests.loop.conftest import Go, Hs, Started, bodies, session_of
from tests.loop.servers.script import say
from tests.loop.source_files import at_home, write, write_script

CLAUDE = ("--provider", "claude")


def test_a_turn_becomes_events_and_messages(hs: Hs, stage: Stage, project: Path) -> None:
    stage.plays([
        INIT, *text("Let me see."), *call("Bash", command="ls"), came_to([{"type": "text", "text": "a b"}]),
        {"type": "stream_event", "parent_tool_use_id": "toolu_1", "event": {"type": "message_start"}},
        {"type": "unheard_of"}, {"raw": "a warning"}, *text("Two files."), result("Two files."),
    ])  # fmt: skip

    done = hs(*CLAUDE, "--json", "how many?", env={"OPENAI_API_KEY": "k1", "ANTHROPIC_API_KEY": "k2"})

    events = [json.loads(line) for line in done.out.splitlines()]
    told = "session text stop usage tool_start stop usage tool_output tool_done text stop usage done result"
    assert [event["type"] for event in events] == told.split()
    assert events[4]["input"] == {"command": "ls"}
    assert events[8]["error"] == "false"
    sums = {"tokens_in": 69, "tokens_out": 15, "cost": 0.5}
    assert events[-1].items() >= {"output": "Two files.", "stop": "end", "error": None, **sums}.items()
    call_text = '\n```tool_call id=toolu_1 name=Bash\n{"command":"ls"}\n```\n\n'
    assert bodies() == [
        ("0001-user.md", "how many?\n"),
        ("0002-assistant.md", "Let me see.\n\n"),
        ("0003-assistant.md", call_text),
        ("0004-tool_result.md", "a b\n"),
        ("0005-assistant.md", "Two files.\n\n"),
    ]
    (start,) = stage.starts
    assert stage.prompts == ["how many?"]
    assert not any("how many" in word for word in start["argv"])
    # Its own login is its own affair; others' keys are none of it.
    assert start["env"]["ANTHROPIC_API_KEY"] == "k2"
    assert "OPENAI_API_KEY" not in start["env"]
    assert start["cwd"] == str(project)


def test_a_session_goes_on_in_the_same_conversation(hs: Hs, stage: Stage) -> None:
    stage.plays(answer("One.", 0.5), answer("Two.", 0.75))

    hs(*CLAUDE, "first")
    assert hs("--continue", "second").out == "Two.\n"

    begun, resumed = (start["argv"] for start in stage.starts)
    assert any(word.startswith("--session-id=") for word in begun)
    assert "--resume=c-1" in resumed
    assert stage.prompts == ["first", "second"]
    # Claude Code tells the sum of a conversation.
    costs = [line for path in sorted(messages()) for line in path.read_text().splitlines()]
    assert [line for line in costs if line.startswith("cost:")] == ["cost: 0.500000", "cost: 0.250000"]


def messages() -> list[Path]:
    return list((session_of() / "messages").iterdir())


def test_what_was_edited_or_said_elsewhere_is_told_anew(go: Go, hs: Hs, stage: Stage) -> None:
    stage.plays(answer("One."), answer("Two."), answer("Three."))
    hs(*CLAUDE, "first")
    (edited,) = [path for path in messages() if path.name == "0002-assistant.md"]
    edited.write_text(edited.read_text().replace("One.", "Uno."))

    hs("--continue", "second")
    server, _ = go(say("From elsewhere."), words=("--continue", "--provider", "openai", "and you?"))
    hs("--continue", *CLAUDE, "third")

    assert "Two." in str(server.requests[0])
    assert not any("--resume" in word for start in stage.starts for word in start["argv"])
    assert "User: first\n\nAssistant: Uno.\n\nNow:\n\nsecond" in stage.prompts[1]
    assert "Assistant: From elsewhere.\n\nNow:\n\nthird" in stage.prompts[2]


def test_a_conversation_that_claude_code_has_lost_is_told_anew(hs: Hs, stage: Stage) -> None:
    lost = result(is_error=True, subtype="error_during_execution", errors=["No conversation found with ID"])
    stage.plays(answer("One."), [lost, {"exits": 1}], answer("Two."))
    hs(*CLAUDE, "first")

    assert hs("--continue", "second").out == "Two.\n"

    assert len(stage.starts) == 3
    assert "Assistant: One." in stage.prompts[2]


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ([{"stderr": "it broke\x1b[2J"}, {"exits": 3}], "without a result (exit code 3): it broke\ufffd[2J"),
        ([{"exits": 0}], "without a result (exit code 0): (nothing)"),
        ([result("Usage limit reached, resets 3pm", is_error=True)], "Claude Code says: Usage limit reached"),
        ([result("Please run /login", is_error=True)], "/login (start claude, and type it there)"),
    ],
)
def test_a_turn_that_fails_is_not_made_twice(ends: list[Json], said: str, hs: Hs, stage: Stage) -> None:
    stage.plays([INIT, *text("I begin."), *ends])

    done = hs(*CLAUDE, "go")

    assert (done.code, done.out) == (1, "")
    assert said in done.err
    assert len(stage.starts) == 1
    # What it has said stays.
    assert ("0002-assistant.md", "I begin.\n\n") in bodies()


def test_room_in_its_context_is_its_own_affair(hs: Hs, stage: Stage) -> None:
    full = json.loads(json.dumps(answer("One.")).replace('"input_tokens": 20', '"input_tokens": 199000'))
    stage.plays(full, answer("Two."))
    hs(*CLAUDE, "--model", "claude-opus-4-5", "first")

    done = hs("--continue", "second")

    assert done.out == "Two.\n"
    assert "summarised" not in done.err


def test_a_limit_ends_the_turn_and_its_cost_counts(hs: Hs, stage: Stage) -> None:
    stage.plays([INIT, *text("Half."), result(is_error=True, subtype="error_max_budget_usd", errors=["$1"])])

    done = hs(*CLAUDE, "--json", "--max-cost", "1", "--max-turns", "7", "--model", "opus", "go")

    last = json.loads(done.out.splitlines()[-1])
    assert (last["stop"], last["cost"]) == ("max_cost", 0.5)
    assert {"--max-budget-usd=1.000000", "--max-turns=7", "--model=opus"} <= set(stage.starts[0]["argv"])


def test_an_answer_that_was_not_streamed_is_saved_and_gone_on_from(hs: Hs, stage: Stage) -> None:
    stage.plays([INIT, result("All at once.", cost=None)], answer("Two."))

    assert hs(*CLAUDE, "go").out == "All at once.\n"
    assert bodies()[-1] == ("0002-assistant.md", "All at once.\n\n")
    # The conversation knows it, so it goes on.
    assert hs("--continue", "on").out == "Two.\n"
    assert stage.prompts == ["go", "on"]


def test_without_it_hs_says_so(hs: Hs, tmp_path: Path) -> None:
    bare = {"PATH": str(tmp_path)}

    assert hs("provider", "claude", "--ready", env=bare).code == 1
    done = hs(*CLAUDE, "go", env=bare)
    assert done.err == "hs: Claude Code is not installed: there is no claude on the PATH.\n"
    assert done.code == 7
    assert hs("go", env=bare).code == 7
    assert not at_home("sessions").exists()


def test_it_is_the_last_to_be_chosen(hs: Hs, stage: Stage) -> None:
    stage.plays(answer("Hello."))

    assert hs("provider", "claude", "--ready").code == 0
    assert hs("provider", "claude", "--defaults").out == "model=default\n"
    assert "Claude Code" in hs("provider", "claude", "--describe").out
    assert hs("provider", "--ready").out == "provider=claude\nmodel=default\n"
    assert hs("provider", "--ready", env={"OPENAI_API_URL": "http://x/"}).out.startswith("provider=openai\n")
    assert hs("go").out == "Hello.\n"


@pytest.mark.usefixtures("stage")
def test_what_only_hs_has_is_not_promised(hs: Hs) -> None:
    done = hs(*CLAUDE, "--tools", "bash", "go")

    assert done.code == 7
    assert "claude has tools of its own" in done.err
    login = hs("auth", "login", "claude")
    assert (login.code, "start claude and type /login" in login.err) == (7, True)


def test_somebody_elses_provider_of_that_name_takes_its_place(hs: Hs, stage: Stage) -> None:
    pack = at_home("plugins/claude")
    for name, code in (
        ("providers/claude", "echo '{\"mine\": 1}'"),
        ("hooks.d/assemble/10-messages", "cat"),
        ("hooks.d/receive/10-save", 'echo \'{"next_state": "done", "output": "Mine."}\''),
    ):
        write_script(pack / name, code)

    assert hs(*CLAUDE, "go").out == "Mine.\n"
    assert not (stage.place / "heard.jsonl").exists()
    assert shutil.which("claude") == f"{stage.place}{os.sep}claude"


def with_a_call() -> list[Json]:
    return [
        INIT, *call("Bash", command="make"), asks("Bash", command="make"), came_to("made"),
        *text("Done."), result("Done."),
    ]  # fmt: skip


def test_by_itself_everything_it_asks_about_may_run_as_a_gate_has_changed_it(hs: Hs, stage: Stage) -> None:
    stage.plays(with_a_call())
    gate = at_home("hooks.d/tool_gate/20-dry")

    assert hs(*CLAUDE, "go").out == "Done.\n"
    write_script(gate, 'sed \'s/"make"/"make -n"/\'')
    hs(*CLAUDE, "go")

    runs = [{"behavior": "allow", "updatedInput": {"command": command}} for command in ("make", "make -n")]
    assert stage.answers == runs


def test_where_nobody_can_be_asked_the_answer_is_no_and_read_only_takes_the_tools_away(
    hs: Hs, stage: Stage
) -> None:
    stage.plays(with_a_call())

    hs(*CLAUDE, "--approve", "ask", "go", session=True)
    hs(*CLAUDE, "--approve", "read-only", "go")

    assert [said["behavior"] for said in stage.answers] == ["deny", "deny"]
    assert "there is none here" in stage.answers[0]["message"]
    assert {"--tools=Read,Glob,Grep", "--strict-mcp-config"} <= set(stage.starts[1]["argv"])


def test_what_nobody_knows_is_refused_and_the_turn_goes_on(hs: Hs, stage: Stage) -> None:
    stage.plays([INIT, {"asks": {"subtype": "hook_callback"}}, *text("Done."), result("Done.")])

    assert hs(*CLAUDE, "go").out == "Done.\n"
    answered = [heard["answered"] for heard in stage.heard if "answered" in heard]
    assert answered[0]["response"]["subtype"] == "error"


def test_an_edit_of_its_own_is_shown_as_a_difference_and_rules_hold_for_it(
    stage: Stage, project: Path
) -> None:
    write(project / "calc.py", "def add(a, b):\n    return a - b\n")
    write("settings.json", '{"permissions": {"deny": ["Edit(*.lock)"]}}')
    locked = {"file_path": str(project / "a.lock"), "content": "x"}
    edit = {"file_path": "calc.py", "old_string": "a - b", "new_string": "a + b", "replace_all": False}
    stage.plays([
        INIT, *call("Write", **locked), asks("Write", **locked), came_to("denied"),
        *call("Edit", "toolu_2", **edit), asks("Edit", "toolu_2", **edit), came_to("edited", "toolu_2"),
        *text("Done."), result("Done."),
    ])  # fmt: skip
    with person("--provider", "claude", "--approve", "ask", "go", cwd=project, env={}) as someone:
        someone.sees("may Edit run?")
        someone.sees("  -    return a - b\n  +    return a + b\n")
        someone.types("y\n", when="or say why not:")
        assert someone.leaves() == 0

    assert [answer["behavior"] for answer in stage.answers] == ["deny", "allow"]
    assert "the rule deny Edit(*.lock)" in stage.answers[0]["message"]


def test_the_user_is_asked_and_always_is_about_the_first_word(stage: Stage, project: Path) -> None:
    more = [*call("Bash", "toolu_2", command="rm x"), asks("Bash", "toolu_2", command="rm x")]
    stage.plays([*with_a_call()[:-6], *more, came_to("no", "toolu_2"), *text("Done."), result("Done.")])

    with person(*CLAUDE, "--approve", "ask", "go", cwd=project, env={}) as typed:
        typed.sees("a = always (bash make), s = save Bash(make), n = no, or say why not:")
        typed.types("a\n")
        typed.sees("a = always (bash rm), s = save Bash(rm:*), n = no, or say why not:")
        typed.types("n\n")
        typed.sees("Done.")
        assert typed.leaves() == 0

    assert [said["behavior"] for said in stage.answers] == ["allow", "deny"]


@pytest.mark.parametrize("number", [signal.SIGKILL, *for_release(signal.SIGTERM, signal.SIGINT)])
def test_whatever_ends_hs_the_session_goes_on(
    number: signal.Signals, hs: Hs, started: Started, stage: Stage, tmp_path: Path
) -> None:
    fifo = tmp_path / "alive"
    os.mkfifo(fifo)
    child = ["sh", "-c", f"exec sleep 600 >{str(fifo)!r}"]
    # Who has answered the question has heard what came before it.
    begun = [INIT, *call("Bash", command="make"), asks("Bash", command="make")]
    stage.plays([*begun, {"starts": child}, {"hangs": True}], answer("Again."))
    run = started(*CLAUDE, "go", stderr=subprocess.PIPE)
    with fifo.open("rb") as alive:
        # Its tool runs from here on.
        run.send_signal(number)
        run.communicate(timeout=200)
        if number != signal.SIGKILL:
            assert run.returncode == 130
            # The end of the file comes when nobody is left who could write.
            assert alive.read() == b""
        else:
            os.killpg(stage.starts[0]["group"], signal.SIGKILL)

    written = bodies()
    assert written[1][0] == "0002-assistant.md"
    assert "tool_call id=toolu_1 name=Bash" in written[1][1]
    assert hs("--continue", "and now?").out == "Again.\n"
    assert "--resume=c-1" in stage.starts[1]["argv"]


async def test_a_turn_is_streamed_and_the_user_is_asked(stage: Stage, editor: Editor) -> None:
    stage.plays(with_a_call())
    editor.env["HARNESS_PROVIDER"] = "claude"

    async with editor.opened() as session:
        assert (await session.says("go")).stop_reason == "end_turn"

    assert editor.said() == "Done."
    assert len(editor.questions) == 1
    assert editor.updates_of("tool_call")[0].tool_call_id == "toolu_1"
    assert [update.status for update in editor.ended()] == ["completed"]
    assert stage.answers == [{"behavior": "allow", "updatedInput": {"command": "make"}}]


async def test_a_turn_is_cancelled_and_the_next_one_goes_on(stage: Stage, editor: Editor) -> None:
    stage.plays([INIT, *text("I begin."), {"hangs": True}], answer("Again."))
    editor.env["HARNESS_PROVIDER"] = "claude"

    async with editor.opened() as session:
        prompt = asyncio.create_task(session.says("go"))
        await editor.until(lambda: editor.said() == "I begin.")
        await session.cancel()
        assert (await asyncio.wait_for(prompt, 60)).stop_reason == "cancelled"
        assert (await session.says("and now?")).stop_reason == "end_turn"

    assert editor.said().endswith("Again.")
    assert "--resume=c-1" in stage.starts[1]["argv"]
