"""An editor that talks to `hs acp` with the provider `claude`: it is asked, and it can cancel."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from acp import text_block

from tests.hs.acp.client import Editor, connected, play
from tests.loop.claude.playing import INIT, Stage, answer, asks, call, came_to, result, text

if TYPE_CHECKING:
    from pathlib import Path

ENV = {"HARNESS_PROVIDER": "claude"}


def test_a_turn_is_streamed_and_the_person_is_asked(stage: Stage, project: Path) -> None:
    stage.plays([
        INIT, *call("Bash", command="make"), asks("Bash", command="make"), came_to("made"),
        *text("All done."), result("All done."),
    ])  # fmt: skip
    editor = Editor()

    async def work() -> None:
        async with connected(editor, ENV) as conn:
            session = await conn.new_session(cwd=str(project))
            done = await conn.prompt(session_id=session.session_id, prompt=[text_block("go")])
            assert done.stop_reason == "end_turn"

    play(work)
    assert editor.said() == "All done."
    assert len(editor.questions) == 1
    assert editor.updates_of("tool_call")[0].tool_call_id == "toolu_1"
    assert [update.status for update in editor.updates_of("tool_call_update")][-1] == "completed"
    assert stage.answers == [{"behavior": "allow", "updatedInput": {"command": "make"}}]


def test_a_turn_is_cancelled_and_the_next_one_goes_on(stage: Stage, project: Path) -> None:
    stage.plays([INIT, *text("I begin."), {"hangs": True}], answer("Again."))
    editor = Editor()

    async def work() -> None:
        async with connected(editor, ENV) as conn:
            session = await conn.new_session(cwd=str(project))
            prompt = asyncio.ensure_future(
                conn.prompt(session_id=session.session_id, prompt=[text_block("go")])
            )
            await editor.until(lambda: editor.said() == "I begin.")
            await conn.cancel(session_id=session.session_id)
            assert (await asyncio.wait_for(prompt, 60)).stop_reason == "cancelled"
            done = await conn.prompt(session_id=session.session_id, prompt=[text_block("and now?")])
            assert done.stop_reason == "end_turn"

    play(work)
    assert editor.said().endswith("Again.")
    assert "--resume=c-1" in stage.starts[1]["argv"]
