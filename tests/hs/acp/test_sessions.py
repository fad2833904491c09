"""Sessions of a client: listed, loaded, gone on in elsewhere or with another model."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from acp import RequestError, text_block

from tests.hs.acp.client import Editor, connected, play
from tests.loop.conftest import CHAT, Serve
from tests.loop.servers.script import say, use


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
            assert other.updates_of("user_message_chunk") == []

    play(work)
    assert other.said() == "Again."


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
    assert sorted(update.status for update in editor.updates_of("tool_call_update")) == [
        "completed", "completed", "in_progress", "in_progress"
    ]  # fmt: skip


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
            changed = await conn.set_config_option(config_id="model", session_id=name, value="ours/big-one")
            assert changed.config_options[0].current_value == "ours/big-one"
            await conn.prompt(session_id=name, prompt=[text_block("go")])
            await conn.close_session(session_id=name)
            loaded = await conn.load_session(cwd=str(project), session_id=name)
            assert loaded.config_options[0].current_value == "ours/big-one"
            await conn.prompt(session_id=name, prompt=[text_block("go on")])

    play(work)
    assert [request["model"] for request in server.requests] == ["big-one"] * 2


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
    assert editor.updates_of("tool_call_update")[-1].content[0].content.text == str(other)


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
            listed = {each.session_id for each in [*first.sessions, *second.sessions]}
            assert len(listed) == 51

    play(work)
