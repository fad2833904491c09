"""A turn of `hs acp`: a real process, and the client of the official library before it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from acp import RequestError, schema, text_block

from tests.hs.acp.client import Editor, connected, play, prompt
from tests.loop.conftest import CHAT, Serve, bodies, session_of
from tests.loop.servers.script import Step, say, use
from tests.loop.source_files import write_models, write_program


def test_a_turn_is_streamed_and_ends(serve: Serve, home: Path, project: Path) -> None:
    server = serve(CHAT, use("bash", command="pwd"), say("All done."))
    editor = Editor()

    async def work() -> None:
        async with connected(editor, CHAT.environment(server)) as conn:
            session = await conn.new_session(cwd=str(project))
            done = await conn.prompt(session_id=session.session_id, prompt=[text_block("RUN it")])
            assert done.stop_reason == "end_turn"
            assert (done.usage.input_tokens, done.usage.output_tokens) == (20, 10)
            assert session.session_id == session_of(home).name

    play(work)
    (call,) = editor.updates_of("tool_call")
    assert (call.title, call.kind, call.status) == ("pwd", "execute", "pending")
    assert [update.status for update in editor.updates_of("tool_call_update")] == ["in_progress", "completed"]
    # The session's directory counts, not that of the process which the editor has started.
    assert editor.updates_of("tool_call_update")[-1].content[0].content.text == str(project)
    assert editor.said() == "All done."


def test_all_of_a_prompt_reaches_the_model(serve: Serve, home: Path, project: Path) -> None:
    server = serve(CHAT, say("Read."))

    async def work() -> None:
        async with connected(Editor(), CHAT.environment(server)) as conn:
            session = await conn.new_session(cwd=str(project))
            held = schema.TextResourceContents(uri="zed:///open", text="the open text")
            blocks = [
                text_block("first"),
                schema.ResourceContentBlock(type="resource_link", name="a b.py", uri="file:///x/a%20b.py"),
                schema.EmbeddedResourceContentBlock(type="resource", resource=held),
                text_block("second"),
            ]
            await conn.prompt(session_id=session.session_id, prompt=blocks)
            picture = schema.ImageContentBlock(type="image", data="AA==", mime_type="image/png")
            with pytest.raises(RequestError, match="no images"):
                await conn.prompt(session_id=session.session_id, prompt=[picture])

    play(work)
    message = bodies(session_of(home))[0][1]
    places = [message.find(part) for part in ("first", "[a b.py](/x/a b.py)", "the open text", "second")]
    assert -1 not in places
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("step", "env", "reason"),
    [
        (Step(text="cut", stop="length"), {}, "max_tokens"),
        (Step(text="no", stop="content_filter"), {}, "refusal"),
        (use("read_file", path="."), {"HARNESS_MAX_TURNS": "1"}, "max_turn_requests"),
    ],
)
def test_why_a_turn_stopped_is_said_in_the_words_of_the_protocol(
    serve: Serve, project: Path, step: Step, env: dict[str, str], reason: str
) -> None:
    server = serve(CHAT, step)

    async def work() -> None:
        async with connected(Editor(), {**CHAT.environment(server), **env}) as conn:
            session = await conn.new_session(cwd=str(project))
            done = await conn.prompt(session_id=session.session_id, prompt=[text_block("go")])
            assert done.stop_reason == reason

    play(work)


def test_failures_say_what_is_wrong(serve: Serve, project: Path) -> None:
    server = serve(CHAT, Step(status=401, said="invalid key of yours"))

    async def work() -> None:
        async with connected(Editor(), CHAT.environment(server)) as conn:
            session = await conn.new_session(cwd=str(project))
            with pytest.raises(RequestError, match="invalid key of yours"):
                await conn.prompt(session_id=session.session_id, prompt=[text_block("go")])
            with pytest.raises(RequestError, match="There is no session"):
                await conn.load_session(cwd=str(project), session_id="no-such")
            with pytest.raises(RequestError, match="absolute path"):
                await conn.new_session(cwd="here")
        async with connected(Editor(), {}) as conn:
            with pytest.raises(RequestError, match="no ready provider") as refused:
                await conn.new_session(cwd=str(project))
            assert "None" not in str(refused.value)

    play(work)


def test_skills_are_commands_and_the_context_is_counted(serve: Serve, home: Path, project: Path) -> None:
    server = serve(CHAT, say("Told."))
    skill = project / ".agents" / "skills" / "tell" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: tell\ndescription: Tell & show\n---\nTell it.\n", encoding="utf-8")
    write_models(home / ".harness", "a- context=1000 price_in=1 price_out=1")
    editor = Editor()

    async def work() -> None:
        async with connected(editor, {**CHAT.environment(server), "HARNESS_MODEL": "a-model"}) as conn:
            session = await conn.new_session(cwd=str(project))
            await editor.until(lambda: editor.updates_of("available_commands_update"))
            await conn.prompt(session_id=session.session_id, prompt=[text_block("/tell a joke")])

    play(work)
    (update,) = editor.updates_of("available_commands_update")
    assert ("tell", "Tell & show") in [(each.name, each.description) for each in update.available_commands]
    assert "Load the skill tell" in bodies(session_of(home))[0][1]
    usage = editor.updates_of("usage_update")[-1]
    assert (usage.used, usage.size, usage.cost.currency) == (15, 1000, "USD")


def test_a_provider_that_streams_nothing_is_heard_too(home: Path, project: Path) -> None:
    pack = home / ".harness" / "plugins" / "quiet"
    write_program(
        pack / "providers" / "quiet", '#!/bin/sh\ncat >/dev/null\necho "{\\"said\\": \\"Quiet.\\"}"\n'
    )
    write_program(pack / "hooks.d" / "assemble" / "10-messages", "#!/bin/sh\ncat\n")
    write_program(
        pack / "hooks.d" / "receive" / "10-save",
        '#!/bin/sh\ncat >/dev/null\necho "{\\"next_state\\": \\"done\\", \\"output\\": \\"Quiet.\\"}"\n',
    )
    editor = Editor()

    prompt(editor, {"HARNESS_PROVIDER": "quiet"}, project)

    assert editor.said() == "Quiet."


def test_without_a_client_it_says_so_instead_of_waiting_for_one() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "harness_lib.hs", "acp"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert "an editor" in done.stderr


def test_a_client_is_told_why_an_answer_takes_its_time(serve: Serve, project: Path) -> None:
    server = serve(CHAT, Step(status=503, said="overloaded"), say("At last."))
    editor = Editor()

    prompt(editor, CHAT.environment(server), project)

    (thought,) = editor.updates_of("agent_thought_chunk")
    assert "overloaded" in thought.content.text
    assert "Asking again in" in thought.content.text
    assert editor.said() == "At last."
