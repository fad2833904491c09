"""What a client is asked before a call runs, and how it is shown what a call has changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from acp import RequestError, text_block

from tests.hs.acp.client import Editor, connected, play, prompt
from tests.loop.conftest import CHAT, Serve, bodies, session_of
from tests.loop.servers.script import say, use


def test_an_edit_is_asked_about_and_shown_as_a_difference(serve: Serve, project: Path) -> None:
    (project / "a.txt").write_text("old\n", encoding="utf-8")
    server = serve(CHAT, use("replace", path="a.txt", old="old", new="new"), say("Done."))
    editor = Editor()

    prompt(editor, CHAT.environment(server), project, "change it")

    ((asked, options),) = editor.questions
    assert asked.kind == "edit"
    assert [option.kind for option in options] == ["allow_once", "allow_always", "reject_once"]
    (difference,) = editor.updates_of("tool_call_update")[-1].content
    assert (difference.path, difference.old_text, difference.new_text) == (
        str(project / "a.txt"), "old\n", "new\n"
    )  # fmt: skip
    assert editor.updates_of("tool_call")[0].locations[0].path == str(project / "a.txt")


def test_no_means_no_and_the_model_is_told(serve: Serve, home: Path, project: Path) -> None:
    server = serve(CHAT, use("bash", command="touch made"), say("As you like."))
    editor = Editor("reject_once")

    prompt(editor, CHAT.environment(server), project)

    assert not (project / "made").exists()
    assert "the user said no" in bodies(session_of(home))[2][1]
    assert editor.updates_of("tool_call_update")[-1].status == "failed"


def test_always_is_asked_once(serve: Serve, project: Path) -> None:
    server = serve(
        CHAT, use("bash", command="touch a"), use("bash", command="touch b"),
        use("bash", command="rm a"), say("Done."),
    )  # fmt: skip
    editor = Editor("allow_always")

    prompt(editor, CHAT.environment(server), project)

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


def test_a_question_of_a_subagent_reaches_the_client(serve: Serve, project: Path) -> None:
    server = serve(
        CHAT, use("agent", prompt="make it"), use("bash", command="touch made"), say("Made."), say("Done.")
    )
    editor = Editor()

    prompt(editor, CHAT.environment(server), project)

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

    prompt(editor, CHAT.environment(server), project)

    ended = [
        update for update in editor.updates_of("tool_call_update") if update.status in {"completed", "failed"}
    ]
    shown = [(each.content[0].old_text, each.content[0].new_text) for each in (ended[0], ended[2])]
    assert shown == [(None, "first\n"), ("first\n", "second\n")]
    # What has changed nothing is no difference.
    assert (ended[1].status, ended[1].content[0].type) == ("failed", "content")
