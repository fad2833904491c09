"""Sessions of a client of `hs acp`, what it is asked, and its MCP servers."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from harness_lib.hs.acp.session import Updates
from tests.hs.acp.client import Editor, Opened, acp
from tests.loop.conftest import CHAT, Serve
from tests.loop.mcp_servers import SERVERS, listening
from tests.loop.servers.script import bash, say, use
from tests.loop.source_files import at_home, write, write_provider


async def test_what_was_said_is_told_again_when_a_session_is_loaded(
    serve: Serve, editor: Editor, home: Path, project: Path
) -> None:
    serve(CHAT, use("read_file", path="a.txt"), say("Read it."), say("Again."))
    write(project / "a.txt", "text\n")
    other = Editor(editor.env, project)

    async with editor.connected() as conn:
        session = await editor.opens(conn)
        await session.says("read a.txt")
        with pytest.raises(acp.RequestError, match="absolute path"):
            await conn.load_session(cwd=".", session_id=session.id)
        await conn.close_session(session_id=session.id)
        with pytest.raises(acp.RequestError, match="not open"):
            await session.says("hello")
    async with other.connected() as conn:
        listed = await conn.list_sessions(cwd=str(project))
        assert [(each.session_id, each.title) for each in listed.sessions] == [(session.id, "read a.txt")]
        assert (await conn.list_sessions(cwd=str(home))).sessions == []
        await conn.load_session(cwd=str(project), session_id=session.id)
        kinds = [update.session_update for update in other.updates]
        assert [kind for kind in kinds if kind != "available_commands_update"] == [
            "user_message_chunk", "tool_call", "tool_call_update", "agent_message_chunk"
        ]  # fmt: skip
        other.updates.clear()
        await conn.resume_session(cwd=str(project), session_id=session.id)
        await Opened(conn, session.id).says("again")
        assert other.updates_of("user_message_chunk") == []

    assert other.said() == "Again."


async def test_two_sessions_of_one_client_work_side_by_side(
    serve: Serve, editor: Editor, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    # Each waits until the other has begun, too.
    wait = "for i in $(seq 600); do [ $(ls ../*/began | wc -l) = 2 ] && exit; sleep 0.1; done; exit 1"
    step = bash(f"touch began; {wait}")
    serve(CHAT, step, step, say("Done."))

    async with editor.connected() as conn:
        sessions = [await editor.opens(conn)]
        editor.project = tmp_path / "other"
        sessions.append(await editor.opens(conn))
        await asyncio.gather(*(session.says("go") for session in sessions))

    assert [update.status for update in editor.ended()] == ["completed"] * 2


async def test_another_model_is_used_and_counts_when_the_session_is_opened_again(
    serve: Serve, editor: Editor, project: Path
) -> None:
    server = serve(CHAT, say("One."), say("Two."))
    write_provider("ours", f"{server.address}{CHAT.path}", "model=big-one", "auth_env=KEY")
    editor.env["KEY"] = "of a test"

    async with editor.connected() as conn:
        session = await editor.opens(conn)
        changed = await session.sets("model", "ours/big-one")
        assert changed.config_options[0].current_value == "ours/big-one"
        await session.says("go")
        await conn.close_session(session_id=session.id)
        loaded = await conn.load_session(cwd=str(project), session_id=session.id)
        assert loaded.config_options[0].current_value == "ours/big-one"
        await session.says("go on")

    assert [request["model"] for request in server.requests] == ["big-one"] * 2


async def test_a_session_works_where_the_client_opens_it(
    serve: Serve, editor: Editor, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    serve(CHAT, say("One."), bash("pwd"), say("Two."))

    async with editor.opened() as session:
        await session.says("go")
        await session.conn.resume_session(cwd=str(other), session_id=session.id)
        await session.says("where?")

    assert editor.ended()[-1].content[0].content.text == str(other)


async def test_many_sessions_are_listed_page_by_page(editor: Editor, project: Path) -> None:
    for number in range(51):
        session = at_home(f"sessions/20260101-000000-{number}")
        (session / "messages").mkdir(parents=True)
        write(session / "session.conf", f"id={session.name}\ncwd={project}\n")

    async with editor.connected() as conn:
        first = await conn.list_sessions(cwd=str(project))
        second = await conn.list_sessions(cwd=str(project), cursor=first.next_cursor)
        assert (len(first.sessions), len(second.sessions), second.next_cursor) == (50, 1, None)
        assert len({each.session_id for each in [*first.sessions, *second.sessions]}) == 51


async def test_an_edit_is_asked_about_and_shown_as_a_difference(serve: Serve, editor: Editor) -> None:
    path = editor.project / "sub/a.txt"
    serve(
        CHAT, use("write_file", path="sub/a.txt", content="old\n"),
        use("replace", path="sub/a.txt", old="no such", new="x"),
        use("replace", path="sub/a.txt", old="old", new="new"), say("Done."),
    )  # fmt: skip

    await editor.prompts("change it")

    (asked, options) = editor.questions[-1]
    assert asked.kind == "edit"
    assert [option.kind for option in options] == ["allow_once", "allow_always", "reject_once"]
    made, failed, replaced = editor.ended()
    # Before the question, and when it is done; a new file has no old text.
    edits = [each.content[0] for each in (asked, replaced, made)]
    shown = [(edit.path, edit.old_text, edit.new_text) for edit in edits]
    assert shown == [(str(path), "old\n", "new\n")] * 2 + [(str(path), None, "old\n")]
    # What has changed nothing is no difference.
    assert (failed.status, failed.content[0].type) == ("failed", "content")
    assert editor.updates_of("tool_call")[0].locations[0].path == str(path)


@pytest.mark.parametrize(("path", "place"), [("~/a", "{home}/a"), ("a", "/work/a"), ("/a", "/a")])
def test_a_call_has_the_place_of_its_file(home: Path, path: str, place: str) -> None:
    event = {"type": "tool_start", "id": "1", "name": "read_file", "input": {"path": path}}
    (update,) = Updates(Path("/work")).of(event)
    assert [each.path for each in update.locations] == [place.format(home=home)]


async def test_a_client_sees_what_a_tool_prints_while_it_runs(
    serve: Serve, served: dict[str, str], project: Path
) -> None:
    waits = "echo one; sleep 0.6; echo $((40 + 2)); while [ ! -e go ]; do sleep 0.05; done"
    serve(CHAT, bash(waits), say("Done."))

    class Impatient(Editor):
        async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
            await super().session_update(session_id, update, **more)
            if "42" in str(getattr(update, "content", "")):
                (project / "go").touch()

    editor = Impatient(served, project)
    await editor.prompts()

    texts = [each.content[0].content.text for each in editor.updates_of("tool_call_update") if each.content]
    assert "one\n42\n" in texts[:-1]


async def test_what_the_user_answers_counts_and_always_is_asked_once(serve: Serve, editor: Editor) -> None:
    server = serve(
        CHAT, bash("touch made"), say("As you like."),
        bash("touch a"), bash("touch b"), bash("rm a"),
        use("agent", prompt="do"), bash("mkdir made"), bash("touch made/c"),
        say("Made."), bash("mkdir d"), say("Done."),
    )  # fmt: skip
    editor.answer = "reject_once"

    async with editor.opened() as session:
        await session.says("go")
        assert editor.ended()[-1].status == "failed"
        editor.answer = "allow_always"
        await session.says("go on")
        with pytest.raises(acp.RequestError, match="There is no /no-such"):
            await session.says("/no-such thing")

    assert "the user said no" in str(server.requests[1])
    # That of the subagent, too; and what it was allowed for good holds for all.
    assert [asked.title for asked, _ in editor.questions] == ["touch made", "touch a", "rm a", "mkdir made"]
    assert {path.name for path in editor.project.iterdir()} == {"b", "made", "d"}
    assert (editor.project / "made/c").exists()
    assert "/no-such" not in str(server.requests)


async def test_approval_is_a_setting_of_the_session(serve: Serve, editor: Editor, project: Path) -> None:
    uses = (bash("touch a"), say("Done."), bash("touch b"), say("Denied."))
    serve(CHAT, *uses)

    async with editor.opened() as session:
        options = {option.id: option.current_value for option in session.options}
        assert options["approval"] == "ask"
        assert options["model"].startswith("openai/")
        await session.sets("approval", "auto")
        await session.says("go")
        changed = await session.sets("approval", "read-only")
        assert changed.config_options[1].current_value == "read-only"
        await session.says("go")
        with pytest.raises(acp.RequestError, match="cannot be"):
            await session.sets("model", "no/such")

    assert editor.questions == []
    assert ((project / "a").exists(), (project / "b").exists()) == (True, False)


async def test_servers_that_the_client_names_are_used(serve: Serve, editor: Editor, project: Path) -> None:
    """Both: one over pipes and one over HTTP; each says of itself that it only reads."""
    serve(CHAT, use("mcp__zed__spoken"), use("mcp__far__spoken"), say("Done."))
    # It has ten seconds to start: on a busy machine that is too little for one that imports the package.
    program = str(SERVERS / "old_mcp_server.py")
    zed = acp.schema.McpServerStdio(name="zed", command=sys.executable, args=[program], env=[])
    header = acp.schema.HttpHeader(name="Authorization", value="Bearer of mine")

    with listening("old_mcp_server.py", project) as address:
        far = acp.schema.HttpMcpServer(type="http", name="far", url=address, headers=[header])
        await editor.prompts(mcp_servers=[zed, far])

    said = [update.content[0].content.text for update in editor.ended()]
    assert said == ["2025-06-18 None", "2025-06-18 Bearer of mine"]
    assert editor.questions == []
