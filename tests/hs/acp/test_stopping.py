"""A turn of `hs acp` is cancelled, or its server told to end: at once, and nothing is left running."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from acp import RequestError, text_block

from tests.hs.acp.client import Editor, connected, play
from tests.loop.conftest import CHAT, Serve
from tests.loop.servers.script import Step, say, use


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
            assert editor.updates_of("tool_call_update")[-1].status == "failed"
            again = await conn.prompt(session_id=session.session_id, prompt=[text_block("go on")])
            assert again.stop_reason == "end_turn"

    play(work)
    assert editor.said() == "Went on."
    if answer == "allow_once":
        pid = int((project / "pid").read_text(encoding="utf-8"))
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


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
