"""Turns of a client of `hs acp`: what it is told, why they end, and how they are stopped."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from harness_lib.system.processes import process
from tests import forked
from tests.conftest import for_release
from tests.hs.acp.client import Editor, acp
from tests.loop.conftest import CHAT, Hs, Serve, bodies, session_of
from tests.loop.environment import environment
from tests.loop.servers.script import Step, bash, say, use
from tests.loop.source_files import at_home, write, write_models, write_script, write_servers


async def test_a_turn_is_streamed_and_ends(serve: Serve, editor: Editor, project: Path) -> None:
    serve(CHAT, bash("pwd"), say("All done."))

    async with editor.opened() as session:
        done = await session.says("RUN it")
        assert done.stop_reason == "end_turn"
        assert (done.usage.input_tokens, done.usage.output_tokens) == (20, 10)
        assert session.id == session_of().name

    (call,) = editor.updates_of("tool_call")
    assert (call.title, call.kind, call.status) == ("pwd", "execute", "pending")
    began, ended = editor.updates_of("tool_call_update")
    assert (began.status, ended.status) == ("in_progress", "completed")
    # The session's directory counts, not that of the process which the editor has started.
    assert ended.content[0].content.text == str(project)
    assert editor.said() == "All done."


async def test_all_of_a_prompt_reaches_the_model_and_none_without_words(serve: Serve, editor: Editor) -> None:
    server = serve(CHAT, say("Read."))

    async with editor.opened() as session:
        link = acp.schema.ResourceContentBlock(type="resource_link", name="a b.py", uri="file:///x/a%20b.py")
        held = acp.schema.TextResourceContents(uri="zed:///open", text="the open text")
        embedded = acp.schema.EmbeddedResourceContentBlock(type="resource", resource=held)
        await session.says("first", link, embedded, "second")
        picture = acp.schema.ImageContentBlock(type="image", data="AA==", mime_type="image/png")
        for said, why in (((picture,), "no images"), ((), "prompt is empty"), ((" \n",), "prompt is empty")):
            with pytest.raises(acp.RequestError, match=why):
                await session.says(*said)

    assert len(server.requests) == 1
    message = bodies()[0][1]
    places = [message.find(part) for part in ("first", "[a b.py](/x/a b.py)", "the open text", "second")]
    assert -1 not in places
    assert places == sorted(places)


async def test_why_a_turn_stopped_is_said_in_the_words_of_the_protocol(serve: Serve, editor: Editor) -> None:
    serve(CHAT, Step("cut", stop="length"), Step("no", stop="content_filter"), use("read_file", path="."))
    editor.env["HARNESS_MAX_TURNS"] = "1"
    async with editor.opened() as session:
        reasons = [(await session.says("go")).stop_reason for _ in range(3)]

    assert reasons == ["max_tokens", "refusal", "max_turn_requests"]


async def test_failures_say_what_is_wrong(serve: Serve, editor: Editor, project: Path) -> None:
    async with editor.connected() as conn:
        with pytest.raises(acp.RequestError, match="no ready provider") as refused:
            await editor.opens(conn)
        assert "None" not in str(refused.value)
    serve(CHAT, Step(status=401, said="invalid key of yours"))
    async with editor.connected() as conn:
        with pytest.raises(acp.RequestError, match="invalid key of yours"):
            await (await editor.opens(conn)).says("go")
        with pytest.raises(acp.RequestError, match="There is no session"):
            await conn.load_session(cwd=str(project), session_id="no-such")
        with pytest.raises(acp.RequestError, match="absolute path"):
            await conn.new_session(cwd="here")


async def test_skills_are_commands_and_the_context_is_counted(serve: Serve, editor: Editor) -> None:
    serve(CHAT, say("Told."))
    write("skills/tell/SKILL.md", "---\nname: tell\ndescription: Tell & show\n---\nTell it.\n")
    write_models("a- context=1000 price_in=1 price_out=1")
    editor.env["HARNESS_MODEL"] = "a-model"

    async with editor.opened() as session:
        await editor.until(lambda: editor.updates_of("available_commands_update"))
        await session.says("/tell a joke")

    (update,) = editor.updates_of("available_commands_update")
    assert ("tell", "Tell & show") in [(each.name, each.description) for each in update.available_commands]
    said = bodies()[0][1]
    assert "Tell it." in said
    assert "The user typed: /tell a joke" in said
    usage = editor.updates_of("usage_update")[-1]
    assert (usage.used, usage.size, usage.cost.currency) == (15, 1000, "USD")


async def test_a_provider_that_streams_nothing_is_heard_too(editor: Editor) -> None:
    for name, said in (
        ("providers/quiet", 'cat >/dev/null; echo \'{"said": "Quiet."}\''),
        ("hooks.d/assemble/10-messages", "cat"),
        ("hooks.d/receive/10-save", 'cat >/dev/null; echo \'{"next_state": "done", "output": "Quiet."}\''),
    ):
        write_script(f"plugins/quiet/{name}", said)
    editor.env["HARNESS_PROVIDER"] = "quiet"

    await editor.prompts()

    assert editor.said() == "Quiet."


def test_without_a_client_it_says_so_instead_of_waiting_for_one(hs: Hs) -> None:
    said = hs("acp", stdin=subprocess.DEVNULL)
    assert (said.code, "an editor" in said.err) == (2, True)


async def test_a_client_is_told_what_is_left_out_and_why_an_answer_takes_its_time(
    serve: Serve, editor: Editor
) -> None:
    write_servers(absent={"command": "/no/such/program"})
    serve(CHAT, Step(status=503, said="overloaded"), say("At last."))

    await editor.prompts()

    left_out, again = [update.content.text for update in editor.updates_of("agent_thought_chunk")]
    assert "the MCP server absent is left out" in left_out
    assert "overloaded" in again
    assert "Asking again in" in again
    assert editor.said() == "At last."


SLEEPS = bash("echo $$ > pid; sleep 300")


@pytest.mark.parametrize("answer", [*for_release("allow_once"), "never"])
async def test_cancel_ends_a_turn_at_once(serve: Serve, editor: Editor, project: Path, answer: str) -> None:
    serve(CHAT, SLEEPS, say("Went on."))
    editor.answer = answer

    async with editor.opened() as session:
        prompt = asyncio.create_task(session.says("go"))
        started = (project / "pid").exists if answer == "allow_once" else lambda: editor.questions
        await editor.until(started)
        await session.cancel()
        assert (await asyncio.wait_for(prompt, 60)).stop_reason == "cancelled"
        assert editor.ended()[-1].status == "failed"
        assert (await session.says("go on")).stop_reason == "end_turn"

    assert editor.said() == "Went on."
    if answer == "allow_once":
        assert process.find(int((project / "pid").read_text())) is None


@pytest.mark.parametrize("how", ["the server is told to end", "the client goes"])
async def test_whoever_ends_in_the_middle_of_a_tool_leaves_nothing_running(
    serve: Serve, editor: Editor, project: Path, how: str
) -> None:
    """A client that is killed closes both its pipes at once, which is no bug."""
    serve(CHAT, SLEEPS)

    async with editor.opened() as session:
        prompt = asyncio.create_task(session.says("go"))
        await editor.until(lambda: (project / "pid").exists() and (project / "pid").read_text())
        (agent,) = editor.processes
        if how == "the client goes":
            for pipe in editor.pipes:
                pipe.transport.abort()
        else:
            agent.terminate()
        assert (await asyncio.to_thread(agent.wait, 60) == 0) is (how == "the client goes")
        with pytest.raises(ConnectionError):
            await prompt
    pid = int((project / "pid").read_text())
    await editor.until(lambda: not Path(f"/proc/{pid}").exists())

    assert not list(at_home().glob("bug-*"))


async def test_cancel_ends_a_turn_that_waits_for_the_model(serve: Serve, editor: Editor) -> None:
    """Before the answer, and in it."""
    begins = Step(text="The beginning of it", events=3, hangs=True)
    server = serve(CHAT, Step(silent=True), begins, say("Went on."))

    async with editor.opened() as session:
        for number, said in enumerate(("", "T"), 1):
            prompt = asyncio.create_task(session.says("go"))
            await editor.until(lambda: len(server.requests) == number and editor.said().startswith(said))  # noqa: B023
            with pytest.raises(acp.RequestError, match="at work"):
                await session.says("and this")
            await session.cancel()
            assert (await asyncio.wait_for(prompt, 60)).stop_reason == "cancelled"
        assert (await session.says("go on")).stop_reason == "end_turn"

    assert editor.said().endswith("Went on.")


PARSE_ERROR, INVALID_REQUEST = -32700, -32600
BAD = {
    "[]": INVALID_REQUEST,
    "42": INVALID_REQUEST,
    "null": INVALID_REQUEST,
    "{}": INVALID_REQUEST,
    '[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}]': INVALID_REQUEST,
    '{"id":[],"result":1}': INVALID_REQUEST,
    '{"id":0,"error":"no"}': INVALID_REQUEST,
    '{"id":1,"method":7}': INVALID_REQUEST,
    '{"method":': PARSE_ERROR,
    "\xff": PARSE_ERROR,
}


def test_a_line_that_is_no_message_gets_an_error_reply(project: Path) -> None:
    hello = '{"jsonrpc":"2.0","id":"last","method":"initialize","params":{"protocolVersion":1}}'
    lines = "\n".join([*BAD, "", hello, ""]).encode("latin-1").decode("utf-8", "surrogateescape")
    done = forked.run_hs(["acp"], cwd=project, env=environment({}), stdin=lines, errors="surrogateescape")

    *refused, answer = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr) == (0, "")
    assert [(each["id"], each["error"]["code"]) for each in refused] == [
        (None, code) for code in BAD.values()
    ]
    assert answer["id"] == "last"
    assert answer["result"]["protocolVersion"] == 1


def test_a_session_is_loaded_without_servers(hs: Hs, project: Path) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "session/load"}
    line = json.dumps({**asked, "params": {"sessionId": "no-such", "cwd": str(project)}})
    said = hs("acp", env={"OPENAI_API_URL": "http://127.0.0.1:1/v1"}, stdin=f"{line}\n")

    assert "There is no session no-such" in json.loads(said.out)["error"]["message"]
