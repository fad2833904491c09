"""The way of a turn: its states, their stages and hooks, and the events that tell of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from harness_lib.loop import discovery, plugins, turn
from harness_lib.loop.piped import HookError, Json
from harness_lib.loop.runtime import Runtime
from tests.loop.conftest import ANTHROPIC, CHAT, Done, Go, Hs, Serve, session_of
from tests.loop.in_process import begun, started
from tests.loop.protocol.conftest import events
from tests.loop.servers.script import Step, Use, bash, say, use
from tests.loop.source_files import at_home, write, write_script


def hook(name: str, text: str) -> Path:
    return write_script(f"hooks.d/{name}", text)


def prints(**said: object) -> str:
    return f"cat > /dev/null; echo '{json.dumps(said)}'"


def test_a_next_state_may_be_any_name_gets_the_rest_and_is_the_last_without_hooks(go: Go, home: Path) -> None:
    hook("start/50-elsewhere", prints(next_state="detour", answer=42))
    on = prints(next_state="nowhere", output="By the way.")
    hook("detour/10", f"tee '{home}/given' > /dev/null; {on}")

    _, answer = go(say("never"))

    assert (answer.code, answer.out) == (0, "By the way.\n"), answer.err
    assert json.loads((home / "given").read_text()) == {"answer": 42}


@pytest.mark.parametrize(
    ("stage", "garbage"),
    [
        ("sources", "that is all"),
        ("resolve", "[]"),
        ("start", ""),
        ("assemble", "42"),
        ("receive", '{"next_state":'),
        ("done", ""),
        ("error", "that is all"),
    ],
)
def test_a_hook_that_prints_no_json_object_ends_the_run_by_its_name(go: Go, stage: str, garbage: str) -> None:
    # Behind ours, and before ours, which would read it as nothing.
    path = hook(f"{stage}/{'12' if garbage else '99'}-silent", f"cat > /dev/null; echo '{garbage}'")
    _, answer = go(Step(status=400) if stage == "error" else say("Done."))
    assert (answer.code, answer.out) == (1, "")
    assert f"hook {path} printed no JSON object during {stage}" in answer.err
    if stage in {"assemble", "receive"}:
        # Often it is a line for people, on the wrong stream.
        assert answer.err.endswith(f"printed no JSON object during {stage}: {garbage}\n")


def test_the_output_of_done_is_what_is_printed(go: Go) -> None:
    hook("done/50-shout", "tr a-z A-Z | sed s/OUTPUT/output/")

    assert go(say("Done."))[1].out == "DONE.\n"


def test_a_done_hook_that_passes_nothing_on_leaves_nothing_to_print(go: Go) -> None:
    hook("done/50-silent", "cat > /dev/null; echo '{}'")

    _, answer = go(say("Done."))

    assert (answer.code, answer.out) == (0, "")
    assert answer.err.count("ended in the stage done") == 1


def test_the_stage_error_reads_what_the_failing_hook_printed(go: Go, home: Path) -> None:
    hook("assemble/50-no", f"{prints(error='not now', more=1)}; exit 1")
    hook("error/05-see", f"tee '{home}/given'")

    _, answer = go(say("never"))

    assert (answer.code, answer.out) == (1, "")
    assert "error: not now" in answer.err
    assert json.loads((home / "given").read_text()) == {"error": "not now", "more": 1}


@pytest.mark.usefixtures("in_process")
def test_states_that_go_round_without_a_request_end_with_an_error(
    serve: Serve, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn, "_STATES_WITHOUT_A_REQUEST", 20)
    hook("round/50-again", prints(next_state="round"))
    hook("start/95-off", prints(next_state="round"))
    run = started(project, CHAT, serve(CHAT, say("never")))

    ending = turn.follow(run)

    assert ending.failed
    assert ending.output.startswith("20 states have followed each other without a request, the last is round")


def test_an_error_hook_that_fails_ends_the_run(go: Go) -> None:
    hook("assemble/50-no", "exit 1")
    hook("error/05-no", "exit 1")

    _, answer = go(say("never"))

    assert (answer.code, answer.out) == (1, "")
    assert '{"type":"done"}' in events(session_of())


def test_sources_are_looked_for_before_a_turn_and_each_request(go: Go, home: Path) -> None:
    hook("sources/50-count", f"echo x >> '{home}/count'; cat")

    go(bash("true"), say("Done."))

    # At the start of hs, when the provider is known, and behind the tool: nothing else has run.
    assert (home / "count").read_text().count("x") == 3


@pytest.fixture
def run(home: Path, project: Path) -> Runtime:
    """Return a run whose log is in home."""
    return begun(project, HARNESS_LOG=str(home / "log"))


def call(run: Runtime, stage: str, payload: Json | str) -> Json | str:
    discovery.refresh(run)
    return plugins.call(run, stage, payload)


def test_without_hooks_a_stage_prints_what_it_reads(run: Runtime) -> None:
    assert call(run, "no-such-stage", '{"a":1}') == '{"a":1}'


def test_hooks_run_in_the_order_of_their_names_as_text(run: Runtime) -> None:
    for name in ("100-c", "20-b", "3-d", "a"):
        hook(f"mine/{name}", f"cat; echo {name}")
    hook("mine/z", """printf '{"said":"%s"}' "$(tr '\\n' ' ')\"""")

    assert call(run, "mine", "") == {"said": " 100-c 20-b 3-d a "}


def test_between_hooks_trailing_line_breaks_are_one(run: Runtime) -> None:
    hook("mine/10", "cat > /dev/null; printf 'x\\n\\n\\n'")
    hook("mine/20", """printf '{"said":"%s"}' "$(od -An -c | tr -d ' ')\"""")

    assert call(run, "mine", "") == {"said": "x\n"}


def test_the_most_local_of_a_name_counts_and_only_executables_that_can_be_seen(run: Runtime) -> None:
    hook("../plugins/p/hooks.d/mine/10-a", "echo no object")
    hook("mine/10-a", "echo '{}'")
    hook("mine/.20-hidden", "echo hidden")
    hook("mine/30-plain", "echo plain").chmod(0o644)
    at_home("hooks.d/mine/40-directory").mkdir()

    assert call(run, "mine", "") == {}


def test_what_a_hook_writes_on_standard_error_goes_to_the_log(run: Runtime, home: Path) -> None:
    hook("mine/10", "echo first >&2; cat")
    hook("mine/20", "echo second >&2; cat")

    assert call(run, "mine", "{}") == {}
    assert (home / "log").read_text() == "first\nsecond\n"


def test_a_hook_that_fails_ends_the_stage_with_what_it_printed_and_a_line_in_the_log(run: Runtime) -> None:
    path = hook("mine/10", "echo half; exit 4")
    hook("mine/20", "echo never")

    with pytest.raises(HookError) as failed:
        call(run, "mine", "{}")

    assert failed.value.result == "half"
    assert (Path.home() / "log").read_text() == f"[harness] hook {path} exited 4 during mine\n"


def test_one_of_ours_that_fails_is_named_in_the_log(run: Runtime, home: Path) -> None:
    with pytest.raises(HookError):
        call(run, "tool_exec", {})

    logged = (home / "log").read_text()
    assert logged == "[harness] hook tool_exec/10-exec failed during tool_exec: no tool calls came in\n"


def test_a_log_that_cannot_be_opened_stops_no_hook(done: Done) -> None:
    hook("start/20-see", "echo heard >&2; cat")
    assert "heard" in done(say("Done."), env={"HARNESS_LOG": "/no/such/log"})[1].err


def test_a_hook_knows_where_it_is(hs: Hs, go: Go, home: Path, project: Path) -> None:
    hook("start/20-see", f"env > '{home}/seen'; cat")
    go(say("Done."), env={"HARNESS_MODEL": "model-one"})

    lines = (home / "seen").read_text().splitlines()
    seen = dict(line.split("=", 1) for line in lines if "=" in line)
    (session,) = (home / ".harness/sessions").iterdir()
    assert {name: seen[name] for name in sorted(seen) if name.startswith(("HARNESS_", "SESSION_"))} == {
        "HARNESS_HOME": str(home / ".harness"),
        "HARNESS_HOME_ASSUMED": str(home / ".harness"),
        "HARNESS_LOG": "/dev/stderr",
        "HARNESS_MAX_TURNS": "100",
        "HARNESS_MODEL": "model-one",
        "HARNESS_PROVIDER": "openai",
        "HARNESS_ROOT": seen["HARNESS_ROOT"],
        "HARNESS_SANDBOX": "off",
        "HARNESS_SESSION": str(session),
        "HARNESS_SESSIONS": str(session.parent),
        "HARNESS_SOURCES": seen["HARNESS_SOURCES"],
        "HARNESS_STAGE": "start",
        "HARNESS_VERSION": hs("version").out.removeprefix("harness ").strip(),
        "SESSION_DIR": str(session),
    }
    assert seen["HARNESS_SOURCES"].split(":")[-1] == str(home / ".harness")
    assert (Path(seen["HARNESS_ROOT"]) / "plugins/core").is_dir()
    assert seen["PWD"] == str(project)


def test_what_is_given_to_the_sources_stage_is_an_empty_object(run: Runtime, home: Path) -> None:
    hook("sources/10-first", f"tee '{home}/given'")

    discovery.refresh(run)

    assert json.loads((home / "given").read_text()) == {}


def test_the_events_of_a_turn_in_their_order(go: Go) -> None:
    step = Step(text="I look.", thinking="hm", uses=(Use("bash", {"command": "echo hi"}, id="c1"),))
    _, said = go(step, say("Done."), words=("--json", "go"), wire=ANTHROPIC)
    lines = [line for line in said.out.splitlines() if not re.match('{"type":"(session|usage|result)"', line)]
    assert lines == [
        '{"type":"thinking","text":"hm"}',
        '{"type":"text","text":"I l"}',
        '{"type":"text","text":"ook."}',
        '{"type":"tool_start","id":"c1","name":"bash","input":{"command":"echo hi"}}',
        '{"type":"stop","reason":"tool_calls","seq":"0002"}',
        '{"type":"tool_run","id":"c1","name":"bash","input":{"command":"echo hi"}}',
        '{"type":"tool_output","text":"--- bash ---\\n  echo hi\\nhi"}',
        '{"type":"tool_done","id":"c1","name":"bash","seq":"0003","error":"false"}',
        '{"type":"text","text":"Do"}',
        '{"type":"text","text":"ne."}',
        '{"type":"stop","reason":"end","seq":"0004"}',
        '{"type":"done"}',
    ]


def test_of_a_long_result_thirty_lines_are_shown_and_an_error_is_marked(go: Go) -> None:
    _, answer = go(bash("seq 1 33; exit 3"), use("read_file", path="none"), say("Done."))
    shown = answer.err.split("--- bash ---\n")[1]
    first, second = shown.split("--- read_file ---\n")
    assert first.splitlines()[1:31] == [str(number) for number in range(1, 31)]
    assert first.splitlines()[31:33] == ["... (4 more lines)", "(error)"]
    assert second.startswith("  path=none\n")


def test_of_a_long_call_and_a_long_line_the_beginning_is_shown(go: Go) -> None:
    _, answer = go(bash(":\n" * 32 + "printf %5000d 1"), say("Done."))
    shown = answer.err.split("--- bash ---\n")[1].splitlines()
    assert shown == ["  :"] * 30 + ["  ... (3 more lines)", f"{' ' * 1000}..."]


def test_the_file_begins_anew_with_each_request(go: Go, home: Path) -> None:
    copy = f'#!/bin/sh\ncp "$HARNESS_SESSION/.stream" "{home}/$HARNESS_STAGE"\ncat\n'
    write("hooks.d/tool_done/90-copy", copy, 0o755)
    go(bash("echo hi"), say("Done."))
    first = (home / "tool_done").read_text()
    assert '"type":"tool_done"' in first
    assert '"type":"tool_done"' not in "".join(events(session_of()))


def test_without_a_session_nobody_is_told(go: Go, home: Path) -> None:
    _, ran = go(
        say("Done."), words=("provider", "openai"), stdin='{"messages":[{"role":"user","content":"x"}]}'
    )
    assert ran.code == 0, ran.err
    assert list(home.rglob(".stream")) == []


def test_a_provider_that_can_stream_is_asked_to_and_runs_no_tool(hs: Hs) -> None:
    pack = at_home("plugins/flow")
    said = '{"type":"text","text":"Flowing."}'
    text = f"""#!/bin/sh
case $1 in --ready) exit 0;; --defaults) echo model=m; exit 0;; esac
cat > /dev/null
[ "$1" = --stream ] && echo '{said}' >> "$HARNESS_SESSION/.stream"
echo "{{\\"said\\":\\"fifo: [$HARNESS_TOOL_FIFO]\\"}}"
"""
    write(pack / "providers/flow", text, 0o755)
    write_script(pack / "hooks.d/assemble/10-messages", "cat")
    save = '#!/bin/sh\nsed \'s/"said"/"next_state":"done","output"/\'\n'
    write(pack / "hooks.d/receive/10-save", save, 0o755)

    answer = hs("go", env={"HARNESS_PROVIDER": "flow"})

    assert answer.out == "fifo: []\n", answer.err
    assert said in events(session_of())
