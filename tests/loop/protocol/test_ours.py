"""Each provider and each tool of ours has the flags of the protocol, run as a program."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loop.conftest import ANTHROPIC, CHAT, Hs, Serve, Wire
from tests.loop.protocol.conftest import Ours, Ran
from tests.loop.servers.script import bash, say
from tests.loop.source_files import write, write_provider

HELLO = {"messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize(("name", "model"), [("anthropic", "claude-"), ("openai", "gpt-")])
def test_a_provider_describes_itself_and_names_its_model_and_variables(
    ours: Ours, name: str, model: str
) -> None:
    assert "\n" not in ours.provider(name, "--describe").out
    assert ours.provider(name, "--defaults").out.startswith(f"model={model}")
    assert f"{name.upper()}_API_KEY" in ours.provider(name, "--env").out


@pytest.mark.parametrize("name", ["anthropic", "openai"])
def test_ready_is_a_status_and_asks_no_network(ours: Ours, name: str) -> None:
    assert ours.provider(name, "--ready").code == 1
    for variable in (f"{name.upper()}_API_KEY", *(["OPENAI_API_URL"] if name == "openai" else [])):
        ours.env[variable] = "http://127.0.0.1:9"
        assert ours.provider(name, "--ready").code == 0
        del ours.env[variable]
    # A stored credential is enough.
    write(".auth.json", f'{{"{name}":[{{"type":"api_key","key":"k"}}]}}', 0o600)
    assert ours.provider(name, "--ready").code == 0


def test_a_payload_becomes_the_native_answer(ours: Ours, serve: Serve, wire: Wire) -> None:
    server = serve(wire, bash("ls"))
    ours.env |= wire.environment(server)
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    payload = {"messages": [item]} if wire.name == "responses" else HELLO

    native = ours.provider(wire.provider, payload=payload).json

    shape = {"anthropic": "content", "chat": "choices", "responses": "output"}[wire.name]
    assert "command" in str(native[shape])
    assert server.requests[0]["model"] == "model-one"


def test_a_failure_says_why_and_is_none_of_the_answer(ours: Ours) -> None:
    ran = ours.provider("anthropic", payload=HELLO)

    assert ran == Ran(1, "ANTHROPIC_API_KEY is not set. Set it, or run: hs auth set anthropic")


def test_anthropics_variables_shape_the_request(ours: Ours, serve: Serve) -> None:
    server = serve(ANTHROPIC, say("Hello."))
    ours.env |= ANTHROPIC.environment(server) | {
        "ANTHROPIC_AUTH_HEADER": "Authorization: Bearer mine", "ANTHROPIC_BETA": "new-thing",
        "ANTHROPIC_API_VERSION": "2024-01-01", "ANTHROPIC_MAX_TOKENS": "77", "HARNESS_THINKING": "max",
    }  # fmt: skip

    ours.provider("anthropic", payload={**HELLO, "system": "s"})

    headers, body = server.headers[0], server.requests[0]
    assert headers["authorization"] == "Bearer mine"
    assert "x-api-key" not in headers
    assert (headers["anthropic-beta"], headers["anthropic-version"]) == ("new-thing", "2024-01-01")
    assert (body["max_tokens"], body["system"]) == (77, "s")
    assert (body["thinking"], body["output_config"]) == ({"type": "adaptive"}, {"effort": "max"})


@pytest.mark.parametrize(("thinking", "effort"), [("low", "low"), ("max", "high"), ("off", None)])
def test_openais_variables_shape_the_request(
    ours: Ours, serve: Serve, thinking: str, effort: str | None
) -> None:
    server = serve(CHAT, say("Hello."))
    ours.env |= CHAT.environment(server)
    ours.env |= {"OPENAI_API_KEY": "k", "OPENAI_MAX_TOKENS": "77", "HARNESS_THINKING": thinking}

    ours.provider("openai", payload={**HELLO, "system": "s"})

    body = server.requests[0]
    assert server.headers[0]["authorization"] == "Bearer k"
    assert body["messages"][0] == {"role": "system", "content": "s"}
    assert (body["max_tokens"], body.get("reasoning_effort")) == (77, effort)


@pytest.mark.parametrize("stored", [False, True])
def test_a_variant_is_its_protocol_with_another_address_key_and_limit(
    hs: Hs, serve: Serve, *, stored: bool
) -> None:
    server = serve(ANTHROPIC, say("Hello."))
    more = ("protocol=anthropic", "auth_env=OUR_KEY", "max_tokens=66", "auth_header=x: y")
    write_provider("ours", f"{server.address}/v1/messages", *more)
    if stored:
        write(".auth.json", '{"ours":[{"type":"api_key","key":"k"}]}', 0o600)
    env = {"HARNESS_PROVIDER": "ours", "ANTHROPIC_API_KEY": "another", "ANTHROPIC_AUTH_HEADER": "z: another"}

    answer = hs("hello", env=env | ({} if stored else {"OUR_KEY": "k"}))

    assert answer.out == "Hello.\n", answer.err
    assert server.headers[0]["x-api-key"] == "k"
    # Another host gets no header that is meant for Anthropic's own.
    assert not {"x", "z"} & {*server.headers[0]}
    assert (server.requests[0]["model"], server.requests[0]["max_tokens"]) == ("m", 66)


def test_a_variant_without_a_key_is_chosen_by_itself_and_says_which_model_it_asks_for(
    hs: Hs, serve: Serve
) -> None:
    server = serve(CHAT, say("Hello."))
    conf = f"protocol=openai\nurl={server.address}/v1/chat/completions\n"
    write("providers/ours.conf", conf)
    answer = hs("hello")
    assert (answer.code, answer.out) == (0, "Hello.\n"), answer.err
    assert f"model: {server.requests[0]['model']}\n" in answer.err


def test_a_variant_without_its_key_says_which_variable_is_not_set(hs: Hs) -> None:
    write_provider("ours", "http://127.0.0.1:9", "auth_env=OUR_KEY")

    answer = hs("hello", env={"HARNESS_PROVIDER": "ours", "OPENAI_API_KEY": "another"})

    assert answer.code == 7
    assert "OUR_KEY is not set" in answer.err


# -- each tool has three


TOOLS = ["agent", "bash", "edit_file", "read_file", "replace", "skill", "write_file"]


@pytest.mark.parametrize("name", TOOLS)
def test_schema_and_description(ours: Ours, name: str) -> None:
    schema = ours.tool(name, "--schema").json

    assert schema["name"] == name
    assert schema["description"]
    assert schema["input_schema"]["type"] == "object"
    assert set(schema["input_schema"]["required"]) <= set(schema["input_schema"]["properties"])
    described = ours.tool(name, "--describe")
    assert described.code == 0
    assert described.out
    assert "\n" not in described.out


def test_bash_gives_output_and_errors_together_and_says_how_it_ended(ours: Ours, project: Path) -> None:
    assert ours.tool("bash", "--exec", {"command": "pwd; echo err >&2"}) == Ran(0, f"{project}\nerr")
    assert ours.tool("bash", "--exec", {"command": "echo out; exit 3"}) == Ran(1, "out\n[exit status 3]")
    assert ours.tool("bash", "--exec", {"command": "kill -9 $$"}) == Ran(1, "[ended by signal 9]")
    ours.env["HARNESS_TOOL_TIMEOUT"] = "1"
    assert "timed out after 1 seconds" in ours.tool("bash", "--exec", {"command": "sleep 300"}).out


def test_what_is_no_text_in_a_result_is_replaced_or_lost(ours: Ours) -> None:
    ran = ours.tool("bash", "--exec", {"command": r"printf 'a\0b\377c\n\n'"})

    assert ran == Ran(0, "ab\ufffdc")


def test_replace_wants_the_text_once_or_all(ours: Ours, project: Path) -> None:
    write(project / "f", "a b a\n")

    for more in ({}, {"all": "false"}):
        assert ours.tool("replace", "--exec", {"path": "f", "old": "a", "new": "x", **more}).code == 1
    assert ours.tool("replace", "--exec", {"path": "f", "old": "z", "new": "x"}).code == 1
    assert ours.tool("replace", "--exec", {"path": "f", "old": "b", "new": "B"}).code == 0
    assert ours.tool("replace", "--exec", {"path": "f", "old": "a", "new": "x", "all": True}).code == 0
    assert (project / "f").read_text() == "x B x\n"


def test_skill_prints_its_text_its_directory_and_its_files(ours: Ours, project: Path) -> None:
    skill = project / ".agents/skills/cook"
    write(skill / "SKILL.md", "---\nname: cooking\ndescription: Cooks\n---\nBoil it.\n")
    write(skill / "scripts/heat", "")
    write(skill / "elsewhere", "")

    ran = ours.tool("skill", "--exec", {"name": "cooking"})

    assert ran.code == 0
    assert ran.out.splitlines() == [
        '<skill name="cooking">', "Boil it.", "", f"Skill directory: {skill}",
        "<skill-resources>", "scripts/heat", "</skill-resources>", "</skill>",
    ]  # fmt: skip
    assert ours.tool("skill", "--exec", {"name": "cook"}) == Ran(1, "error: skill 'cook' not found")
