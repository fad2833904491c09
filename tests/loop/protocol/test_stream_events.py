"""The events of a turn, byte for byte: who draws them looks for exactly these."""

from __future__ import annotations

import re
from pathlib import Path

from tests.loop.conftest import ANTHROPIC, CHAT, Hs, Serve, session_of
from tests.loop.protocol.conftest import events
from tests.loop.servers.script import Step, Use, say, use
from tests.loop.source_files import write


def test_the_events_of_a_turn_in_their_order(hs: Hs, serve: Serve) -> None:
    step = Step(text="I look.", thinking="hm", uses=(Use("bash", {"command": "echo hi"}, id="c1"),))
    server = serve(ANTHROPIC, step, say("Done."))

    answer = hs("--json", "go", env=ANTHROPIC.environment(server))

    lines = [
        line for line in answer.out.splitlines() if not re.match('{"type":"(session|usage|result)"', line)
    ]
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


def test_of_a_long_result_thirty_lines_are_shown_and_an_error_is_marked(hs: Hs, serve: Serve) -> None:
    server = serve(CHAT, use("bash", command="seq 1 33; exit 3"), use("read_file", path="none"), say("Done."))

    answer = hs("go", env=CHAT.environment(server))

    shown = answer.err.split("--- bash ---\n")[1]
    first, second = shown.split("--- read_file ---\n")
    assert first.splitlines()[1:31] == [str(number) for number in range(1, 31)]
    assert first.splitlines()[31:33] == ["... (4 more lines)", "(error)"]
    assert second.startswith("  path=none\n")


def test_the_file_begins_anew_with_each_request(hs: Hs, serve: Serve, home: Path) -> None:
    copy = f'#!/bin/sh\ncp "$HARNESS_SESSION/.stream" "{home}/$HARNESS_STAGE"\ncat\n'
    write(home / ".harness/hooks.d/tool_done/90-copy", copy, 0o755)
    server = serve(CHAT, use("bash", command="echo hi"), say("Done."))

    hs("go", env=CHAT.environment(server))

    first = (home / "tool_done").read_text(encoding="utf-8")
    assert '"type":"tool_done"' in first
    assert '"type":"tool_done"' not in "".join(events(session_of(home)))


def test_others_may_append_to_it(hs: Hs, serve: Serve, home: Path) -> None:
    event = '{"type":"text","text":"mine"}'
    text = f"#!/bin/sh\necho '{event}' >> \"$HARNESS_SESSION/.stream\"\ncat\n"
    write(home / ".harness/hooks.d/receive/05-say", text, 0o755)

    hs("go", env=CHAT.environment(serve(CHAT, say("Done."))))

    assert event in events(session_of(home))


def test_without_a_session_nobody_is_told(hs: Hs, serve: Serve, home: Path) -> None:
    server = serve(CHAT, say("Done."))

    ran = hs(
        "provider",
        "openai",
        env=CHAT.environment(server),
        stdin='{"messages":[{"role":"user","content":"x"}]}',
    )

    assert ran.code == 0, ran.err
    assert list(home.rglob(".stream")) == []


def test_a_provider_that_can_stream_is_asked_to_and_runs_no_tool(hs: Hs, home: Path) -> None:
    pack = home / ".harness/plugins/flow"
    said = '{"type":"text","text":"Flowing."}'
    text = f"""#!/bin/sh
case $1 in --ready) exit 0;; --defaults) echo model=m; exit 0;; esac
cat > /dev/null
[ "$1" = --stream ] && echo '{said}' >> "$HARNESS_SESSION/.stream"
echo "{{\\"said\\":\\"fifo: [$HARNESS_TOOL_FIFO]\\"}}"
"""
    write(pack / "providers/flow", text, 0o755)
    write(pack / "hooks.d/assemble/10-messages", "#!/bin/sh\ncat\n", 0o755)
    save = '#!/bin/sh\nsed \'s/"said"/"next_state":"done","output"/\'\n'
    write(pack / "hooks.d/receive/10-save", save, 0o755)

    answer = hs("go", env={"HARNESS_PROVIDER": "flow"})

    assert answer.out == "fifo: []\n", answer.err
    assert said in events(session_of(home))
