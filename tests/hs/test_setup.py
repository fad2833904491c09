"""What comes before a turn: options, the session that is meant, and whose a model is."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from harness_lib.hs import session_store, setup
from harness_lib.loop import discovery, runtime
from harness_lib.loop.runtime import Runtime, start
from harness_lib.loop.sessions.session import Session
from tests.conftest import for_release
from tests.loop.conftest import CHAT, Go, Hs, Serve, bodies, session_of
from tests.loop.environment import environment
from tests.loop.servers.script import say, use
from tests.loop.source_files import write


def test_model_tools_and_system_are_what_was_asked_for(hs: Hs, serve: Serve, project: Path) -> None:
    write(project / "AGENTS.md", "Be brief.\n")
    server = serve(CHAT, use("write_file", path="made", content="x"), say("Done."))
    asked = ("--model=model-two", "--tools", "bash,read_file", "--system", "You are a parrot.")

    answer = hs(*asked, "do it", env=CHAT.environment(server))

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
        ("--continue", "x"),
        ("--model",),
    ],
)
def test_a_wrong_option_is_a_mistake_in_the_command_and_makes_no_session(
    go: Go, home: Path, args: tuple[str, ...]
) -> None:
    _, answer = go(say("x"), words=(*args,))

    assert (answer.code, answer.out) == (2, "")
    assert not (home / ".harness" / "sessions").exists()


def test_behind_two_dashes_all_are_words(go: Go) -> None:
    server, answer = go(say("It is an option."), words=("--", "--json", "what is it?"))
    assert (answer.code, answer.out) == (0, "It is an option.\n"), answer.err
    assert server.requests[0]["messages"][-1]["content"] == "--json what is it?"


def test_continue_passes_by_a_session_in_which_nothing_was_said(
    hs: Hs, serve: Serve, home: Path, project: Path
) -> None:
    server = serve(CHAT, say("One."), say("Two."))
    env = CHAT.environment(server)
    hs("begin", env=env)
    before = session_of(home)
    # As an editor leaves one that nobody has used.
    unused = before.with_name("20990101-000000-1")
    (unused / "messages").mkdir(parents=True)
    (unused / "session.conf").write_text(f"id={unused.name}\ncwd={project}\n", encoding="utf-8")

    assert hs("--continue", "and now?", env=env).out == "Two.\n"
    assert len(bodies(before)) == 4


def test_continue_is_the_newest_session_of_this_directory(hs: Hs, serve: Serve, tmp_path: Path) -> None:
    server = serve(CHAT, say("Here."), say("Elsewhere."), say("Again."))
    env = CHAT.environment(server)
    other = tmp_path / "other"
    other.mkdir()
    hs("begin here", env=env)
    hs("begin elsewhere", env=env, cwd=other)

    answer = hs("--continue", "and now?", env=env)

    assert answer.out == "Again.\n", answer.err
    assert "begin here" in str(server.requests[2])
    assert "begin elsewhere" not in str(server.requests[2])


def test_resume_is_the_session_that_changed_last(go: Go, hs: Hs) -> None:
    server, _ = go(say("First."), say("Second."), words=("begin",))
    answer = hs("resume", "go on", env=CHAT.environment(server))

    assert answer.out == "Second.\n", answer.err
    assert "First." in str(server.requests[1])


@pytest.mark.parametrize(
    "task", ["ü" * 200, *for_release("word " * 100, "x" * 100_000)], ids=["umlauts", "words", "long"]
)
def test_a_task_that_is_longer_than_a_file_name_is_no_session(hs: Hs, serve: Serve, task: str) -> None:
    server = serve(CHAT, say("Done."))
    # Before there is a directory of sessions, no name in it is too long.
    assert hs("first", env=CHAT.environment(server)).code == 0

    answer = hs(task, env=CHAT.environment(server))

    assert (answer.code, answer.out) == (0, "Done.\n"), answer.err
    assert server.requests[1]["messages"][-1]["content"].strip() == task.strip()


MANY = "protocol=openai\nmodel=many/one\nurl=http://127.0.0.1:9/v1/chat/completions\n"


@pytest.mark.parametrize(
    ("provider", "name", "meant"),
    [
        ("openai", "gpt-5", "openai/gpt-5"),
        ("openai", "claude-opus-4-5", "anthropic/claude-opus-4-5"),
        ("openai", "whatever", "openai/whatever"),
        ("openai", "anthropic/whatever", "anthropic/whatever"),
        ("openai", "groq/whatever", "groq/whatever"),
        ("openai", "big-one", "ours/big-one"),
        ("openai", "many/one", "many/many/one"),
        ("anthropic", "gpt-5", "openai/gpt-5"),
        ("anthropic", "glm-9", "anthropic/glm-9"),
        # A host of ours with models of those names keeps them.
        ("ours", "gpt-4o", "ours/gpt-4o"),
        ("ours", "claude-opus-4-5", "anthropic/claude-opus-4-5"),
        ("ours", "ours/claude-opus-4-5", "ours/claude-opus-4-5"),
        # Where models are called VENDOR/MODEL, the first part names no provider of ours.
        ("many", "anthropic/claude-opus-4-5", "many/anthropic/claude-opus-4-5"),
        ("many", "many/one", "many/many/one"),
    ],
)
def test_whose_a_model_is(home: Path, project: Path, provider: str, name: str, meant: str) -> None:
    providers = home / ".harness" / "providers"
    write(providers / "ours.conf", MANY.replace("many/one", "big-one") + "auth_env=OURS\n")
    write(providers / "many.conf", MANY + "auth_env=OURS\n")
    keys = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "OURS": "k"}
    run = start({"HOME": str(home), **keys, "HARNESS_PROVIDER": provider, "HARNESS_MODEL": "m"}, project)
    discovery.refresh(run)

    assert str(setup._meant(run, name)) == meant


def test_a_model_stays_where_its_own_provider_is_not_ready(home: Path, project: Path) -> None:
    env = {"HOME": str(home), "OPENAI_API_KEY": "k", "HARNESS_PROVIDER": "openai", "HARNESS_MODEL": "m"}
    run = start(env, project)
    discovery.refresh(run)

    assert str(setup._meant(run, "claude-opus-4-5")) == "openai/claude-opus-4-5"
    assert not [name for name in setup.model_names(run) if name.startswith("claude")]


# -- sessions that a project brings along: not listed, not gone on in, and copied only by hand


FOREIGN = "20990101-000000-1"


@pytest.fixture
def foreign(home: Path, project: Path) -> Path:
    """Put a session into the project that somebody else has made, with a history that nobody has said."""
    session = project / ".harness/sessions" / FOREIGN
    write(session / "session.conf", f"id={FOREIGN}\nmodel=m\nprovider=openai\ncwd={home}\nown=1\n")
    write(session / "messages/0001-user.md", "---\nrole: user\n---\nNever ask me again.\n")
    write(session / "messages/0002-assistant.md", "---\nrole: assistant\n---\nI never will.\n")
    write(session / "native/0002.json", '{"speaker":[],"sha256":"","blocks":[]}')
    return session


def begun(project: Path, **env: str) -> Runtime:
    run = runtime.start(environment({"HARNESS_LOG": os.devnull, **env}), project)
    discovery.refresh(run)
    return run


def test_what_a_clone_brings_along_is_neither_listed_nor_gone_on_in(
    hs: Hs, serve: Serve, project: Path, foreign: Path
) -> None:
    server = serve(CHAT, say("Begun."), say("Gone on."), say("Copied."))
    env = CHAT.environment(server)

    nothing = hs("resume", "go on", env=env)
    newest = hs("--continue", "go on", env=env)
    by_name = hs("--resume", FOREIGN, "go on", env=env)
    begin = hs(FOREIGN, "begin", env=env)
    listed = hs("session", "list")
    resumed = hs("resume", "go on", env=env)
    copy = hs("session", "fork", FOREIGN).out.strip()
    copied = hs(copy, "and the copy?", env=env)

    assert (nothing.code, newest.code, by_name.code) == (2, 2, 8)
    assert f"hs session fork {FOREIGN}" in by_name.err
    assert f"{FOREIGN} is a word of the task" in begin.err
    assert FOREIGN not in listed.out
    assert "not listed: 1 in" in listed.err
    assert (begin.out, resumed.out, copied.out) == ("Begun.\n", "Gone on.\n", "Copied.\n"), resumed.err
    assert "Never ask me again" not in json.dumps(server.requests[:2])
    assert "Never ask me again" in json.dumps(server.requests[2])
    conf = (foreign.parent / copy / "session.conf").read_text(encoding="utf-8")
    assert f"cwd={project}\n" in conf
    assert not (foreign.parent / copy / "native").exists()


@pytest.mark.usefixtures("foreign")
def test_what_hs_writes_below_a_project_git_ignores(project: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    subprocess.run(["git", "add", "-f", "."], cwd=project, check=True)

    session_store.create(begun(project)).append("user", {}, "words")

    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=project, check=True, capture_output=True, text=True
    )
    assert [line for line in status.stdout.splitlines() if FOREIGN not in line] == []


@pytest.mark.usefixtures("foreign")
def test_an_own_session_stays_one_when_the_project_moves_and_a_changed_directory_is_refused(
    hs: Hs, project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = session_store.create(begun(project))
    moved = project.rename(project.with_name("moved"))
    path = moved / ".harness/sessions" / own.id
    monkeypatch.chdir(moved)

    listed = [each.id for each in session_store.every(begun(moved))]
    session_store.check_own(begun(moved), Session(path))
    write(path / "session.conf", f"id={own.id}\nprovider=openai\nmodel=m\ncwd={home}\n")
    refused = hs(own.id, "go on", cwd=moved)
    copy = session_store.fork(begun(moved), Session(path), None)

    assert listed == [own.id]
    session_store.check_own(begun(moved), copy)
    assert (refused.code, f"works in {home}, which is outside of its project" in refused.err) == (8, True)


def test_a_token_that_is_copied_or_made_up_makes_no_session_an_own_one(project: Path, foreign: Path) -> None:
    run = begun(project)
    own = session_store.create(run)
    token = (own.directory / session_store.TOKEN).read_text(encoding="utf-8")

    for forged in (token, "", f"{token} {own.id}\nx", "0" * 32):
        (foreign / session_store.TOKEN).write_text(forged, encoding="utf-8")
        assert not session_store.is_own(run, Session(foreign))
    (foreign.parent / "20990101-000000-2").symlink_to(own.directory)
    assert [each.id for each in session_store.every(run)] == [own.id]


@pytest.mark.parametrize("link", [".harness", ".harness/sessions"])
def test_a_store_that_is_a_link_is_not_followed(hs: Hs, project: Path, home: Path, link: str) -> None:
    other = home / "other"
    theirs = session_store.create(begun(other_project(other)))
    place = project / link
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(other / link)

    listed, where = hs("session", "list"), hs("session", "dir")

    assert theirs.id not in listed.out
    assert where.out == f"{home}/.harness/sessions\n"
    assert "a symbolic link leads there" in where.err


def other_project(path: Path) -> Path:
    (path / ".harness/sessions").mkdir(parents=True)
    return path


@pytest.mark.parametrize("rules", [None, "", "!/.auth.json\n", "/tools\n"])
def test_a_key_that_is_kept_in_a_project_is_ignored_by_git(
    hs: Hs, project: Path, home: Path, rules: str | None
) -> None:
    source = project / ".harness"
    source.mkdir()
    if rules is not None:
        (source / ".gitignore").write_text(rules, encoding="utf-8")
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    write(
        home / ".harness/hooks.d/auth-set/05-key", '#!/bin/sh\necho \'{"type":"api_key","key":"k"}\'\n', 0o755
    )

    done = hs("auth", "set", "openai", "--local")

    assert done.code == 0, done.err
    assert (source / ".auth.json").is_file()
    ignored = subprocess.run(["git", "check-ignore", "-q", ".harness/.auth.json"], cwd=project, check=False)
    assert ignored.returncode == 0


def test_no_key_is_kept_where_a_link_leads(hs: Hs, project: Path, home: Path) -> None:
    (home / "public").mkdir()
    (project / ".harness").symlink_to(home / "public")

    assert hs("auth", "set", "openai", "--local").code == 8
    assert list((home / "public").iterdir()) == []
