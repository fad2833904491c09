"""`hs acp` with the official client library: a real process, over standard input and output."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from acp import RequestError, schema, text_block

from tests.hs.acp.client import Editor, connected, play
from tests.loop.conftest import WIRES, Serve, bodies, session_of
from tests.loop.mcp_servers import listening
from tests.loop.servers.script import Step, say, use
from tests.loop.source_files import write_models, write_program, write_servers

CHAT = WIRES[1]


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
    (call,) = editor.of("tool_call")
    assert (call.title, call.kind, call.status) == ("pwd", "execute", "pending")
    assert [update.status for update in editor.of("tool_call_update")] == ["in_progress", "completed"]
    # The session's directory counts, not that of the process which the editor has started.
    assert editor.of("tool_call_update")[-1].content[0].content.text == str(project)
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


def test_an_edit_is_asked_about_and_shown_as_a_difference(serve: Serve, project: Path) -> None:
    (project / "a.txt").write_text("old\n", encoding="utf-8")
    server = serve(CHAT, use("replace", path="a.txt", old="old", new="new"), say("Done."))
    editor = Editor()

    async def work() -> None:
        async with connected(editor, CHAT.environment(server)) as conn:
            session = await conn.new_session(cwd=str(project))
            await conn.prompt(session_id=session.session_id, prompt=[text_block("change it")])

    play(work)
    ((asked, options),) = editor.questions
    assert asked.kind == "edit"
    assert [option.kind for option in options] == ["allow_once", "allow_always", "reject_once"]
    (difference,) = editor.of("tool_call_update")[-1].content
    assert (difference.path, difference.old_text, difference.new_text) == (
        str(project / "a.txt"), "old\n", "new\n"
    )  # fmt: skip
    assert editor.of("tool_call")[0].locations[0].path == str(project / "a.txt")


def test_no_means_no_and_the_model_is_told(serve: Serve, home: Path, project: Path) -> None:
    server = serve(CHAT, use("bash", command="touch made"), say("As you like."))
    editor = Editor("reject_once")

    async def work() -> None:
        async with connected(editor, CHAT.environment(server)) as conn:
            session = await conn.new_session(cwd=str(project))
            await conn.prompt(session_id=session.session_id, prompt=[text_block("go")])

    play(work)
    assert not (project / "made").exists()
    assert "the user said no" in bodies(session_of(home))[2][1]
    assert editor.of("tool_call_update")[-1].status == "failed"


def test_always_is_asked_once(serve: Serve, project: Path) -> None:
    server = serve(
        CHAT, use("bash", command="touch a"), use("bash", command="touch b"),
        use("bash", command="rm a"), say("Done."),
    )  # fmt: skip
    editor = Editor("allow_always")

    async def work() -> None:
        async with connected(editor, CHAT.environment(server)) as conn:
            session = await conn.new_session(cwd=str(project))
            await conn.prompt(session_id=session.session_id, prompt=[text_block("go")])

    play(work)
    assert [asked.title for asked, _ in editor.questions] == ["touch a", "rm a"]


def test_approval_is_a_setting_of_the_session(serve: Serve, project: Path) -> None:
    uses = (use("bash", command="touch a"), say("Done."), use("bash", command="touch b"), say("Denied."))
    server = serve(CHAT, *uses)
    editor = Editor()

    async def work() -> None:
        async with connected(editor, CHAT.environment(server)) as conn:
            session = await conn.new_session(cwd=str(project))
            options = {option.id: option for option in session.config_options}
            assert options["approval"].current_value == "ask"
            assert options["model"].current_value.startswith("openai/")
            name = session.session_id
            await conn.set_config_option(config_id="approval", session_id=name, value="auto")
            await conn.prompt(session_id=name, prompt=[text_block("go")])
            changed = await conn.set_config_option(config_id="approval", session_id=name, value="read-only")
            assert changed.config_options[1].current_value == "read-only"
            await conn.prompt(session_id=name, prompt=[text_block("go")])
            with pytest.raises(RequestError, match="cannot be"):
                await conn.set_config_option(config_id="model", session_id=name, value="no/such")

    play(work)
    assert editor.questions == []
    assert ((project / "a").exists(), (project / "b").exists()) == (True, False)


@pytest.mark.parametrize("answer", ["allow_once", "never"])
def test_cancel_ends_a_turn_at_once(serve: Serve, project: Path, answer: str) -> None:
    server = serve(CHAT, use("bash", command="echo $$ > pid; sleep 300"), say("Went on."))
    editor = Editor(answer)

    async def work() -> None:
        async with connected(editor, CHAT.environment(server)) as conn:
            session = await conn.new_session(cwd=str(project))
            prompt = asyncio.create_task(
                conn.prompt(session_id=session.session_id, prompt=[text_block("go")])
            )
            started = (project / "pid").exists if answer == "allow_once" else lambda: editor.questions
            await editor.until(started)
            await conn.cancel(session_id=session.session_id)
            assert (await asyncio.wait_for(prompt, 60)).stop_reason == "cancelled"
            assert editor.of("tool_call_update")[-1].status == "failed"
            again = await conn.prompt(session_id=session.session_id, prompt=[text_block("go on")])
            assert again.stop_reason == "end_turn"

    play(work)
    assert editor.said() == "Went on."
    if answer == "allow_once":
        pid = int((project / "pid").read_text(encoding="utf-8"))
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_what_was_said_is_told_again_when_a_session_is_loaded(
    serve: Serve, home: Path, project: Path
) -> None:
    server = serve(CHAT, use("read_file", path="a.txt"), say("Read it."), say("Again."))
    (project / "a.txt").write_text("text\n", encoding="utf-8")
    editor, other = Editor(), Editor()

    async def work() -> None:
        async with connected(editor, CHAT.environment(server)) as conn:
            name = (await conn.new_session(cwd=str(project))).session_id
            await conn.prompt(session_id=name, prompt=[text_block("read a.txt")])
            await conn.close_session(session_id=name)
            with pytest.raises(RequestError, match="not open"):
                await conn.prompt(session_id=name, prompt=[text_block("hello")])
        async with connected(other, CHAT.environment(server)) as conn:
            listed = await conn.list_sessions(cwd=str(project))
            assert [(each.session_id, each.title) for each in listed.sessions] == [(name, "read a.txt")]
            assert (await conn.list_sessions(cwd=str(home))).sessions == []
            await conn.load_session(cwd=str(project), session_id=name)
            kinds = [update.session_update for update in other.updates]
            assert [kind for kind in kinds if kind != "available_commands_update"] == [
                "user_message_chunk", "tool_call", "tool_call_update", "agent_message_chunk"
            ]  # fmt: skip
            other.updates.clear()
            await conn.resume_session(cwd=str(project), session_id=name)
            await conn.prompt(session_id=name, prompt=[text_block("again")])
            assert other.of("user_message_chunk") == []

    play(work)
    assert other.said() == "Again."


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


def test_two_sessions_of_one_client_work_side_by_side(serve: Serve, project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    # Each waits until the other has begun, too.
    wait = "for i in $(seq 600); do [ $(ls ../*/began | wc -l) = 2 ] && exit; sleep 0.1; done; exit 1"
    command = f"touch began; {wait}"
    step = use("bash", command=command)
    server = serve(CHAT, step, step, say("Done."))
    editor = Editor()

    async def work() -> None:
        async with connected(editor, CHAT.environment(server)) as conn:
            opened = [(await conn.new_session(cwd=str(path))).session_id for path in (project, other)]
            prompts = [conn.prompt(session_id=each, prompt=[text_block("go")]) for each in opened]
            await asyncio.gather(*prompts)

    play(work)
    assert sorted(update.status for update in editor.of("tool_call_update")) == [
        "completed", "completed", "in_progress", "in_progress"
    ]  # fmt: skip


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
            await editor.until(lambda: editor.of("available_commands_update"))
            await conn.prompt(session_id=session.session_id, prompt=[text_block("/tell a joke")])

    play(work)
    (told,) = editor.of("available_commands_update")
    assert ("tell", "Tell & show") in [(each.name, each.description) for each in told.available_commands]
    assert "Load the skill tell" in bodies(session_of(home))[0][1]
    usage = editor.of("usage_update")[-1]
    assert (usage.used, usage.size, usage.cost.currency) == (15, 1000, "USD")


def test_servers_that_the_client_names_are_used(serve: Serve, project: Path) -> None:
    server = serve(CHAT, use("mcp__zed__z_echo", text="x"), say("Done."))
    editor = Editor()
    place = str(Path(__file__).parents[1] / "loop" / "servers" / "mcp_server.py")
    named = schema.McpServerStdio(name="zed", command=sys.executable, args=[place], env=[])

    async def work() -> None:
        async with connected(editor, CHAT.environment(server)) as conn:
            session = await conn.new_session(cwd=str(project), mcp_servers=[named])
            await conn.prompt(session_id=session.session_id, prompt=[text_block("go")])

    play(work)
    assert editor.of("tool_call_update")[-1].content[0].content.text == "echo: x"
    # It says of itself that it only reads.
    assert editor.questions == []


def test_a_server_that_is_told_to_end_leaves_nothing_running(serve: Serve, project: Path) -> None:
    server = serve(CHAT, use("bash", command="echo $$ > pid; sleep 300"))
    editor = Editor("allow_once")

    async def work() -> None:
        async with connected(editor, CHAT.environment(server)) as conn:
            session = await conn.new_session(cwd=str(project))
            prompt = asyncio.create_task(
                conn.prompt(session_id=session.session_id, prompt=[text_block("go")])
            )
            await editor.until(lambda: (project / "pid").exists() and (project / "pid").read_text())
            (agent,) = editor.processes
            agent.terminate()
            assert await asyncio.wait_for(agent.wait(), 60) != 0
            with pytest.raises(ConnectionError):
                await prompt
        pid = int((project / "pid").read_text(encoding="utf-8"))
        await editor.until(lambda: not Path(f"/proc/{pid}").exists())

    play(work)


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

    async def work() -> None:
        async with connected(editor, {"HARNESS_PROVIDER": "quiet"}) as conn:
            session = await conn.new_session(cwd=str(project))
            await conn.prompt(session_id=session.session_id, prompt=[text_block("go")])

    play(work)
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


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (Step(silent=True), ""),
        (Step(text="The beginning of it", events=3, hangs=True), "T"),
        (Step(status=429, headers=(("retry-after", "50"),)), ""),
    ],
    ids=["before the answer", "in the answer", "between two tries"],
)
def test_cancel_ends_a_turn_that_waits_for_the_model(
    serve: Serve, project: Path, step: Step, said: str
) -> None:
    server = serve(CHAT, step, say("Went on."))
    editor = Editor()

    async def work() -> None:
        async with connected(editor, CHAT.environment(server)) as conn:
            session = await conn.new_session(cwd=str(project))
            prompt = asyncio.create_task(
                conn.prompt(session_id=session.session_id, prompt=[text_block("go")])
            )
            await editor.until(lambda: server.requests and editor.said().startswith(said))
            with pytest.raises(RequestError, match="at work"):
                await conn.prompt(session_id=session.session_id, prompt=[text_block("and this")])
            await conn.cancel(session_id=session.session_id)
            assert (await asyncio.wait_for(prompt, 60)).stop_reason == "cancelled"
            again = await conn.prompt(session_id=session.session_id, prompt=[text_block("go on")])
            assert again.stop_reason == "end_turn"

    play(work)
    assert editor.said().endswith("Went on.")


def test_another_model_is_used_and_counts_when_the_session_is_opened_again(
    serve: Serve, home: Path, project: Path
) -> None:
    (home / ".harness" / "providers").mkdir(parents=True)
    server = serve(CHAT, say("One."), say("Two."))
    address = CHAT.environment(server)["OPENAI_API_URL"]
    conf = f"protocol=openai\nmodel=big-one\nurl={address}\nauth_env=OUR_KEY\n"
    (home / ".harness" / "providers" / "ours.conf").write_text(conf, encoding="utf-8")

    async def work() -> None:
        async with connected(Editor(), CHAT.environment(server) | {"OUR_KEY": "of a test"}) as conn:
            session = await conn.new_session(cwd=str(project))
            name = session.session_id
            found = await conn.set_config_option(config_id="model", session_id=name, value="ours/big-one")
            assert found.config_options[0].current_value == "ours/big-one"
            await conn.prompt(session_id=name, prompt=[text_block("go")])
            await conn.close_session(session_id=name)
            loaded = await conn.load_session(cwd=str(project), session_id=name)
            assert loaded.config_options[0].current_value == "ours/big-one"
            await conn.prompt(session_id=name, prompt=[text_block("go on")])

    play(work)
    assert [request["model"] for request in server.requests] == ["big-one"] * 2


def test_a_question_of_a_subagent_reaches_the_client(serve: Serve, project: Path) -> None:
    server = serve(
        CHAT, use("agent", prompt="make it"), use("bash", command="touch made"), say("Made."), say("Done.")
    )
    editor = Editor()

    async def work() -> None:
        async with connected(editor, CHAT.environment(server)) as conn:
            session = await conn.new_session(cwd=str(project))
            await conn.prompt(session_id=session.session_id, prompt=[text_block("go")])

    play(work)
    assert [asked.title for asked, _ in editor.questions] == ["touch made"]
    assert (project / "made").exists()


def test_new_and_edited_files_are_shown_as_differences(serve: Serve, project: Path) -> None:
    server = serve(
        CHAT,
        use("write_file", path="sub/new.txt", content="first\n"),
        use("replace", path="sub/new.txt", old="no such", new="x"),
        use("write_file", path="sub/new.txt", content="second\n"),
        say("Done."),
    )
    editor = Editor()

    async def work() -> None:
        async with connected(editor, CHAT.environment(server)) as conn:
            session = await conn.new_session(cwd=str(project))
            await conn.prompt(session_id=session.session_id, prompt=[text_block("go")])

    play(work)
    ended = [update for update in editor.of("tool_call_update") if update.status in {"completed", "failed"}]
    shown = [(each.content[0].old_text, each.content[0].new_text) for each in (ended[0], ended[2])]
    assert shown == [(None, "first\n"), ("first\n", "second\n")]
    # What has changed nothing is no difference.
    assert (ended[1].status, ended[1].content[0].type) == ("failed", "content")


def test_a_session_works_where_the_client_opens_it(serve: Serve, project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    server = serve(CHAT, say("One."), use("bash", command="pwd"), say("Two."))
    editor = Editor()

    async def work() -> None:
        async with connected(editor, CHAT.environment(server)) as conn:
            name = (await conn.new_session(cwd=str(project))).session_id
            await conn.prompt(session_id=name, prompt=[text_block("go")])
            await conn.resume_session(cwd=str(other), session_id=name)
            await conn.prompt(session_id=name, prompt=[text_block("where?")])

    play(work)
    assert editor.of("tool_call_update")[-1].content[0].content.text == str(other)


def test_many_sessions_are_listed_page_by_page(home: Path, project: Path) -> None:
    for number in range(51):
        session = home / ".harness" / "sessions" / f"20260101-000000-{number}"
        (session / "messages").mkdir(parents=True)
        (session / "session.conf").write_text(f"id={session.name}\ncwd={project}\n", encoding="utf-8")

    async def work() -> None:
        async with connected(Editor(), {}) as conn:
            first = await conn.list_sessions(cwd=str(project))
            second = await conn.list_sessions(cwd=str(project), cursor=first.next_cursor)
            assert (len(first.sessions), len(second.sessions), second.next_cursor) == (50, 1, None)
            found = {each.session_id for each in [*first.sessions, *second.sessions]}
            assert len(found) == 51

    play(work)


def test_servers_over_http_that_the_client_names_are_used(serve: Serve, project: Path) -> None:
    server = serve(CHAT, use("mcp__far__spoken"), say("Done."))
    editor = Editor()

    async def work(address: str) -> None:
        header = schema.HttpHeader(name="Authorization", value="Bearer of mine")
        named = schema.HttpMcpServer(type="http", name="far", url=address, headers=[header])
        async with connected(editor, CHAT.environment(server)) as conn:
            session = await conn.new_session(cwd=str(project), mcp_servers=[named])
            await conn.prompt(session_id=session.session_id, prompt=[text_block("go")])

    with listening("old_mcp_server.py", project) as address:
        play(lambda: work(address))
    assert editor.of("tool_call_update")[-1].content[0].content.text == "2025-06-18 Bearer of mine"


def test_a_client_is_told_why_an_answer_takes_its_time(serve: Serve, project: Path) -> None:
    server = serve(CHAT, Step(status=503, said="overloaded"), say("At last."))
    editor = Editor()

    async def work() -> None:
        async with connected(editor, CHAT.environment(server)) as conn:
            session = await conn.new_session(cwd=str(project))
            await conn.prompt(session_id=session.session_id, prompt=[text_block("go")])

    play(work)
    (told,) = editor.of("agent_thought_chunk")
    assert "overloaded" in told.content.text
    assert "Asking again in" in told.content.text
    assert editor.said() == "At last."


def test_a_client_is_told_what_is_left_out(serve: Serve, home: Path, project: Path) -> None:
    write_servers(home / ".harness", absent={"command": "/no/such/program"})
    server = serve(CHAT, say("Done."))
    editor = Editor()

    async def work() -> None:
        async with connected(editor, CHAT.environment(server)) as conn:
            session = await conn.new_session(cwd=str(project))
            await conn.prompt(session_id=session.session_id, prompt=[text_block("go")])

    play(work)
    (told,) = editor.of("agent_thought_chunk")
    assert "the MCP server absent is left out" in told.content.text
