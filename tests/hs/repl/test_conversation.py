"""A person who talks to `hs` on a real terminal."""

from __future__ import annotations

from pathlib import Path

from tests.hs.person import person
from tests.loop.conftest import CHAT, Hs, Serve, bodies, session_of
from tests.loop.servers.script import say, use
from tests.loop.source_files import write_servers


def test_a_conversation_goes_on_until_the_person_leaves(serve: Serve, project: Path, home: Path) -> None:
    server = serve(CHAT, say("Hello **you**."), say("Again."))

    with person(cwd=project, env=CHAT.environment(server)) as someone:
        someone.sees("You:")
        someone.types("hello\r")
        someone.sees("Hello you.")
        someone.sees("You:")
        someone.types("\x1b[200~two\nlines\x1b[201~\r")
        someone.sees("Again.")
        someone.sees("You:")
        someone.types("/tools\r")
        someone.sees("read_file")
        someone.sees("You:")
        code = someone.leaves("/quit\r")

    assert code == 0
    assert len(server.requests) == 2
    said = [body.strip() for name, body in bodies(session_of(home)) if "user" in name]
    assert said == ["hello", "two\nlines"]
    assert "gpt-4o" in someone.plain


def test_a_person_is_asked_and_may_stop_all_at_the_question(serve: Serve, project: Path) -> None:
    server = serve(
        CHAT, use("bash", command="touch one"), use("bash", command="touch two"), say("Stopped, then.")
    )

    with person(cwd=project, env=CHAT.environment(server)) as someone:
        someone.sees("You:")
        someone.types("do both\r")
        someone.sees("or say why not:")
        someone.types("y\n")
        someone.sees("touch two")
        someone.sees("or say why not:")
        someone.types("\x03")
        someone.sees("interrupted")
        someone.sees("You:")
        someone.types("and?\r")
        someone.sees("Stopped, then.")
        code = someone.leaves("\x04")

    assert code == 0
    assert {path.name for path in project.iterdir()} == {"one"}


def test_a_session_goes_on_at_the_prompt_with_another_model(serve: Serve, project: Path, home: Path) -> None:
    server = serve(CHAT, say("First."), say("Second."))
    with person("begin", cwd=project, env=CHAT.environment(server)) as someone:
        someone.leaves()

    with person("resume", cwd=project, env=CHAT.environment(server)) as someone:
        # What was said last, for whoever has forgotten it.
        someone.sees("You: begin")
        someone.sees("First.")
        someone.sees("You:")
        someone.types("/model model-two\r")
        someone.sees("model-two (openai)")
        someone.sees("You:")
        someone.types("go on\r")
        someone.sees("Second.")
        someone.leaves("\x04")
        assert f"To go on with it: hs --resume {session_of(home).name}" in someone.plain

    assert server.requests[1]["model"] == "model-two"
    assert "First." in str(server.requests[1])
    assert len(list(session_of(home).glob("messages/*"))) == 4


def test_what_we_notice_is_said_above_the_line(serve: Serve, project: Path, home: Path) -> None:
    write_servers(home / ".harness", absent={"command": "/no/such/program"})
    server = serve(CHAT, say("Done."))

    with person(cwd=project, env=CHAT.environment(server)) as someone:
        someone.has_on_screen("You:")
        someone.types("go\r")
        someone.has_on_screen("the MCP server absent is left out")
        someone.has_on_screen("Done.")
        someone.leaves("\x04")


def test_a_session_in_which_nothing_was_said_is_not_kept(
    hs: Hs, serve: Serve, project: Path, home: Path
) -> None:
    server = serve(CHAT, say("Hello."))
    env = CHAT.environment(server)
    hs("begin", env=env)
    before = session_of(home)

    with person(cwd=project, env=env) as someone:
        someone.has_on_screen("You:")
        someone.types("/tools\r")
        someone.has_on_screen("read_file")
        assert someone.leaves("\x04") == 0

    assert session_of(home) == before
    # One that is gone on in stays, whether anything is said or not.
    with person("--continue", cwd=project, env=env) as someone:
        someone.has_on_screen("You:")
        assert someone.leaves("\x04") == 0
    assert len(bodies(before)) == 2


def test_a_file_that_somebody_has_put_into_an_unused_session_stays(
    serve: Serve, project: Path, home: Path
) -> None:
    server = serve(CHAT, say("Hello."))

    with person(cwd=project, env=CHAT.environment(server)) as someone:
        someone.has_on_screen("You:")
        (session_of(home) / "notes.txt").write_text("mine", encoding="utf-8")
        assert someone.leaves("\x04") == 0

    assert (session_of(home) / "notes.txt").read_text(encoding="utf-8") == "mine"
    assert (session_of(home) / "session.conf").exists()


def test_a_terminal_that_can_draw_nothing_is_told_so(serve: Serve, project: Path) -> None:
    server = serve(CHAT, say("Hello."))

    with person(cwd=project, env=CHAT.environment(server) | {"TERM": "dumb"}) as someone:
        assert someone.leaves() == 2

    assert "can draw nothing" in someone.raw
    assert "\x1b" not in someone.raw


def test_a_conversation_of_reading_asks_nobody_and_changes_nothing(serve: Serve, project: Path) -> None:
    (project / "there").write_text("what stands there\n", encoding="utf-8")
    server = serve(CHAT, use("bash", command="touch made"), use("read_file", path="there"), say("Done."))

    with person("--approve", "read-only", cwd=project, env=CHAT.environment(server)) as someone:
        someone.has_on_screen("You:")
        someone.types("go\r")
        someone.has_on_screen("nothing may be changed here")
        someone.has_on_screen("Done.")
        assert someone.leaves("\x04") == 0

    assert not (project / "made").exists()
    assert "what stands there" in str(server.requests[2])
    assert "may bash run" not in someone.raw


def test_a_session_that_a_tool_deletes_ends_the_turn_and_not_the_conversation(
    serve: Serve, project: Path, home: Path
) -> None:
    server = serve(CHAT, use("bash", command=f"rm -r {home}/.harness/sessions/*"), say("Never said."))

    with person("--approve", "auto", cwd=project, env=CHAT.environment(server)) as someone:
        someone.has_on_screen("You:")
        someone.types("go\r")
        someone.has_on_screen("What stands in it is whole")
        someone.has_on_screen("Ctrl-C: stop", gone=True)
        someone.types("/help\r")
        someone.has_on_screen("Tab completes")
        assert someone.leaves("\x04") == 0

    assert len(server.requests) == 1
