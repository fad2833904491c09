"""What comes before a turn: options, the session that is meant, and whose a model is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness_lib.hs import setup
from tests.conftest import for_release
from tests.loop.conftest import CHAT, Go, Hs, Serve, session_of
from tests.loop.in_process import begun
from tests.loop.servers.script import bash, say, use
from tests.loop.source_files import at_home, write


def test_model_tools_and_system_are_what_was_asked_for(hs: Hs, serve: Serve, project: Path) -> None:
    write(project / "AGENTS.md", "Be brief.\n")
    server = serve(CHAT, use("write_file", path="made", content="x"), say("Done."))
    asked = ("--model=model-two", "--tools", "bash,read_file", "--system", "You are a parrot.")

    answer = hs(*asked, "do it")

    request = server.requests[0]
    assert answer.code == 0, answer.err
    assert request["model"] == "model-two"
    assert [tool["function"]["name"] for tool in request["tools"]] == ["bash", "read_file"]
    assert request["messages"][0]["content"].startswith("You are a parrot.\n\nBe brief.")
    assert not (project / "made").exists()
    assert "not found" in str(server.requests[1])


@pytest.mark.parametrize(
    "args",
    [
        ("--frobnicate", "x"),
        ("--max-turns", "many", "x"),
        ("--max-cost", "-1", "x"),
        ("--tools", "hammer", "x"),
        ("--resume", "nowhere", "x"),
        # A script's variable may be unset.
        ("--resume", "", "x"),
        ("-m", "gpt-4o", "x"),
        ("--continue", "x"),
        ("--model",),
    ],
)
def test_a_wrong_option_is_a_mistake_in_the_command_and_makes_no_session(
    go: Go, args: tuple[str, ...]
) -> None:
    _, answer = go(say("x"), words=(*args,))

    assert (answer.code, answer.out) == (2, "")
    assert "" not in args or "--resume wants the name of a session, not an empty text." in answer.err
    assert not at_home("sessions").exists()


@pytest.mark.parametrize("words", ["what does -x mean", "-- --json what is it?"])
def test_a_dash_inside_of_a_task_or_behind_two_dashes_is_a_word(go: Go, words: str) -> None:
    server, answer = go(say("It is an option."), words=words.split())
    assert (answer.code, answer.out) == (0, "It is an option.\n"), answer.err
    assert server.told(0) == words.removeprefix("-- ")


def test_a_setting_that_an_editor_of_windows_has_written_counts(go: Go) -> None:
    """With a byte order mark before its first key."""
    write("settings.conf", "\ufeffmodel=one\r\n")
    write("mcp.json", '\ufeff{"mcpServers": {}}')
    write("settings.json", '\ufeff{"permissions": {"deny": ["Bash(true)"]}}\r\n')
    server, answer = go(bash("true"), say("Done."))
    assert server.requests[0]["model"] == "one"
    assert "left out" not in answer.err
    assert "the rule deny Bash(true)" in server.told(1)
    # A message that was edited there, too.
    path = session_of() / "messages/0001-user.md"
    path.write_text(f"\ufeff{path.read_text()}")
    again, _ = go(say("Again."), words=(session_of().name, "and?"))
    assert again.requests[0]["messages"][1]["content"] == "go"


@pytest.mark.parametrize(
    ("conf", "why"),
    [
        ("", "mine.conf has no protocol= of anthropic or openai"),
        ("protocol=soap\n", "mine.conf has no protocol= of anthropic or openai"),
        ("protocol=openai\nmax_tokens=lots\n", "max_tokens of mine must be a number"),
    ],
)
def test_what_is_wrong_in_the_file_of_a_provider_is_said(go: Go, conf: str, why: str) -> None:
    write("providers/mine.conf", f"{conf}url=http://127.0.0.1:9/v1\n")
    _, answer = go(say("never"), words=("--provider", "mine", "x"))
    assert answer.code == 7
    assert why in answer.err


def test_continue_is_the_newest_session_of_this_directory_in_which_something_was_said(
    hs: Hs, go: Go, project: Path, tmp_path: Path
) -> None:
    server, _ = go(say("Here."), say("Elsewhere."), say("Again."), words=("begin here",))
    # As an editor leaves one that nobody has used.
    unused = session_of().with_name("20990101-000000-1")
    (unused / "messages").mkdir(parents=True)
    (unused / "session.conf").write_text(f"id={unused.name}\ncwd={project}\n")
    other = tmp_path / "other"
    other.mkdir()
    hs("begin elsewhere", cwd=other)

    answer = hs("--continue", "and now?")

    assert answer.out == "Again.\n", answer.err
    assert "begin here" in str(server.requests[2])
    assert "begin elsewhere" not in str(server.requests[2])


def test_resume_is_the_session_that_changed_last(go: Go, hs: Hs) -> None:
    server, _ = go(say("First."), say("Second."), words=("begin",))
    answer = hs("resume", "go on")

    assert answer.out == "Second.\n", answer.err
    assert "First." in str(server.requests[1])


@pytest.mark.parametrize(
    "task", ["ü" * 200, *for_release("word " * 100, "x" * 100_000)], ids=["umlauts", "words", "long"]
)
def test_a_task_that_is_longer_than_a_file_name_is_no_session(hs: Hs, serve: Serve, task: str) -> None:
    server = serve(CHAT, say("Done."))
    # Before there is a directory of sessions, no name in it is too long.
    assert hs("first").code == 0

    answer = hs(task)

    assert (answer.code, answer.out) == (0, "Done.\n"), answer.err
    assert server.told(1).strip() == task.strip()


MANY = "protocol=openai\nmodel=many/one\nurl=http://127.0.0.1:9/v1/chat/completions\n"


@pytest.mark.parametrize(
    ("provider", "name", "meant"),
    [
        ("openai", "gpt-5", "openai/gpt-5"),
        ("openai", "claude-opus-4-5", "openai/claude-opus-4-5"),
        ("openai", "whatever", "openai/whatever"),
        ("openai", "anthropic/whatever", "anthropic/whatever"),
        ("openai", "groq/whatever", "groq/whatever"),
        ("openai", "many/one", "many/one"),
        ("ours", "ours/claude-opus-4-5", "ours/claude-opus-4-5"),
        # Where models are called VENDOR/MODEL, the first part names no provider of ours.
        ("many", "anthropic/claude-opus-4-5", "many/anthropic/claude-opus-4-5"),
        ("many", "many/one", "many/many/one"),
    ],
)
def test_whose_a_model_is(home: Path, project: Path, provider: str, name: str, meant: str) -> None:
    providers = home / ".harness/providers"
    write(providers / "ours.conf", MANY.replace("many/one", "big-one") + "auth_env=OURS\n")
    write(providers / "many.conf", MANY + "auth_env=OURS\n")
    keys = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "OURS": "k"}
    run = begun(project, **keys, HARNESS_PROVIDER=provider, HARNESS_MODEL="m")

    assert "/".join(setup.meant(run, name)) == meant
    # What Tab offers is understood.
    for offered in setup.offered(run):
        assert "/".join(setup.meant(run, offered)) in setup.models(run)


def test_of_a_provider_that_is_not_ready_no_model_is_named(project: Path) -> None:
    run = begun(project, OPENAI_API_KEY="k", HARNESS_PROVIDER="openai", HARNESS_MODEL="m")

    assert not [name for name in setup.models(run) if "claude" in name]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("HARNESS_MAX_TURNS", "1o"),
        ("HARNESS_MAX_COST", "$1"),
        ("HARNESS_SANDBOX", "on"),
        ("HARNESS_TOOL_TIMEOUT", "10m"),
        ("HARNESS_APPROVE", "maybe"),
    ],
)
def test_a_limit_of_the_environment_that_cannot_be_read_is_refused(go: Go, variable: str, value: str) -> None:
    server, answer = go(say("never"), env={variable: value})

    assert (answer.code, server.requests) == (3, [])
    assert value in answer.err
    # Message and hint are two sentences.
    assert not re.search(r"[a-z0-9] (It|Correct) ", answer.err), answer.err
