"""Plugins that are programs, in three languages, beside our own: nobody can tell the difference."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.loop.conftest import ANTHROPIC, CHAT, Hs, Serve, bodies, session_of
from tests.loop.foreign_plugins import GREET, write_echo_pack
from tests.loop.servers.script import say, use
from tests.loop.source_files import write_program


@pytest.mark.parametrize("language", sorted(GREET))
def test_a_tool_in_any_language_is_offered_and_run(hs: Hs, serve: Serve, home: Path, language: str) -> None:
    if shutil.which(language) is None:
        pytest.skip(f"{language} is not installed")
    write_program(home / ".harness" / "tools" / "greet", GREET[language])
    server = serve(CHAT, use("greet", who="you"), say("Greeted."))

    answer = hs("greet", env=CHAT.environment(server))

    assert answer.out == "Greeted.\n", answer.err
    assert "greet" in [tool["function"]["name"] for tool in server.requests[0]["tools"]]
    result = (session_of(home) / "messages" / "0003-tool_result.md").read_text(encoding="utf-8")
    assert f"hello from {language}" in result
    assert "you" in result
    assert "and stderr" in result
    assert "error: true" in result


def test_a_tool_takes_the_place_of_ours(hs: Hs, serve: Serve, home: Path) -> None:
    write_program(home / ".harness" / "tools" / "bash", GREET["bash"].replace("greet", "bash"))
    server = serve(CHAT, use("bash", command="rm -rf /nothing"), say("Done."))

    hs("go", env=CHAT.environment(server))

    assert "hello from bash" in bodies(session_of(home))[2][1]


def test_a_hook_in_each_stage_stands_in_the_pipeline(hs: Hs, serve: Serve, home: Path) -> None:
    stages = ["resolve", "start", "assemble", "send", "receive", "tool_exec", "tool_done", "done"]
    seen = home / "seen"
    for stage in stages:
        hook = f'#!/bin/sh\necho "$HARNESS_STAGE $HARNESS_PROVIDER" >> "{seen}"\ncat\n'
        write_program(home / ".harness" / "hooks.d" / stage / "60-watch", hook)
    server = serve(ANTHROPIC, use("bash", command="echo hello"), say("Done."))

    answer = hs("go", env=ANTHROPIC.environment(server))

    assert answer.out == "Done.\n", answer.err
    turn = ["assemble", "send", "receive"]
    expected = ["resolve", "start", *turn, "tool_exec", "tool_done", *turn, "done"]
    assert [line.split()[0] for line in seen.read_text(encoding="utf-8").splitlines()] == expected


def test_a_hook_that_fails_ends_the_run_with_its_name_and_exit_1(hs: Hs, serve: Serve, home: Path) -> None:
    hook = '#!/bin/sh\necho \'{"error":"not today"}\'\nexit 4\n'
    path = write_program(home / ".harness" / "hooks.d" / "send" / "05-guard", hook)
    server = serve(ANTHROPIC, say("never"))

    answer = hs("go", env=ANTHROPIC.environment(server))

    assert (answer.code, answer.out, server.requests) == (1, "", [])
    assert "error: not today" in answer.err
    assert f"hook {path} exited 4 during send" in answer.err


def test_an_error_hook_can_go_on(hs: Hs, serve: Serve, home: Path) -> None:
    marker = home / "failed-once"
    fails = f'#!/bin/sh\n[ -e "{marker}" ] || {{ touch "{marker}"; exit 1; }}\ncat\n'
    write_program(home / ".harness" / "hooks.d" / "send" / "05-guard", fails)
    write_program(
        home / ".harness" / "hooks.d" / "error" / "20-retry",
        '#!/bin/sh\necho \'{"next_state":"assemble"}\'\n',
    )
    server = serve(ANTHROPIC, say("After all."))

    answer = hs("go", env=ANTHROPIC.environment(server))

    assert (answer.code, answer.out) == (0, "After all.\n"), answer.err


def test_a_provider_pack_answers_without_us(hs: Hs, home: Path) -> None:
    write_echo_pack(home / ".harness")

    answer = hs("say this", env={"HARNESS_PROVIDER": "echo"})

    assert (answer.code, answer.out) == (0, "echo-1: say this\n"), answer.err


def test_a_command_takes_the_place_of_the_task(hs: Hs, home: Path) -> None:
    text = '#!/bin/sh\n[ "$1" = --describe ] && echo "Ships it" && exit\necho "shipped $*"; exit 9\n'
    write_program(home / ".harness" / "commands" / "ship", text)

    answer = hs("ship", "it", "now")

    assert (answer.code, answer.out) == (9, "shipped it now\n")
    assert "Ships it" in hs("help").out


def test_a_sources_hook_of_home_names_another_source(hs: Hs, home: Path, tmp_path: Path) -> None:
    write_program(tmp_path / "team" / "commands" / "hail", "#!/bin/sh\necho hail\n")
    hook = f"""#!/usr/bin/env python3
import json, sys
payload = json.load(sys.stdin)
print(json.dumps({{"sources": payload["sources"] + [{str(tmp_path / "team")!r}]}}))
"""
    write_program(home / ".harness" / "hooks.d" / "sources" / "50-team", hook)

    assert hs("hail").out == "hail\n"


def test_a_tool_that_is_added_during_a_run_is_offered_at_the_next_request(
    hs: Hs, serve: Serve, home: Path
) -> None:
    path = home / ".harness" / "tools" / "greet"
    command = f"mkdir -p '{path.parent}'; cat > '{path}' <<'END'\n{GREET['bash']}END\nchmod +x '{path}'"
    server = serve(CHAT, use("bash", command=command), use("greet"), say("Done."))

    hs("extend yourself", env=CHAT.environment(server))

    offered = [[tool["function"]["name"] for tool in request["tools"]] for request in server.requests]
    assert ["greet" in names for names in offered] == [False, True, True]
    assert "hello from bash" in bodies(session_of(home))[4][1]


@pytest.mark.parametrize(
    "text",
    [
        "#!/bin/sh\nexit 1\n",
        "#!/bin/sh\necho no json\n",
        "#!/no/such/interpreter\n",
        '#!/bin/sh\necho \'{"name":"x"}\'\n',
        '#!/bin/sh\necho \'{"name":"broken","input_schema":"none"}\'\n',
        '#!/bin/sh\necho \'{"name":"broken","input_schema":{"type":"string"}}\'\n',
        '#!/bin/sh\necho \'{"name":"broken","description":["no","text"]}\'\n',
    ],
)
def test_a_broken_tool_is_named_once_and_left_out(hs: Hs, serve: Serve, home: Path, text: str) -> None:
    write_program(home / ".harness" / "tools" / "broken", text)
    (home / ".harness" / "tools" / "directory").mkdir()
    (home / ".harness" / "tools" / "not-executable").write_text("x", encoding="utf-8")
    server = serve(CHAT, use("bash", command="echo hello"), say("Done."))

    answer = hs("go", env=CHAT.environment(server))

    assert answer.out == "Done.\n", answer.err
    assert answer.err.count("left out") == 1
    offered = {tool["function"]["name"] for tool in server.requests[0]["tools"]}
    assert not offered & {"broken", "directory", "not-executable"}


def test_our_plugins_are_programs_too(hs: Hs, project: Path) -> None:
    schema = json.loads(hs("tool", "bash", "--schema").out)
    assert schema["name"] == "bash"
    assert hs("tool", "bash", "--exec", stdin='{"command":"pwd"}').out == f"{project}\n"
    assert hs("tool", "bash", "--exec", stdin='{"command":"exit 2"}').code == 1
    assert hs("provider", "openai", "--ready").code == 1
    assert hs("provider", "openai", "--ready", env={"OPENAI_API_URL": "http://127.0.0.1:9"}).code == 0
    assert hs("provider", "openai", "--defaults").out.startswith("model=")
    payload = json.loads(hs("hook", "assemble/20-tools", stdin="{}").out)
    assert [tool["name"] for tool in payload["tools"]] == [
        "agent",
        "bash",
        "edit_file",
        "read_file",
        "replace",
        "skill",
        "write_file",
    ]
