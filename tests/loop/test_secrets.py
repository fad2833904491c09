"""A key is where it is needed and nowhere else: in no argument, no environment of a tool, no log, no file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.loop.conftest import ANTHROPIC, CHAT, Done, Go, Hs, Serve, Wire
from tests.loop.mcp_servers import entry
from tests.loop.servers.script import Step, bash, say, use
from tests.loop.source_files import at_home, write, write_program, write_servers, write_tool

SECRET = "sk-very-secret-0123456789"
# What every process of this machine was started with, and the environment of this one and what it is below.
LOOK = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '; env"


# A program that is started, so that the kernel shows its own arguments and environment.
STARTED = ("env",)


def keys(wire: Wire) -> dict[str, str]:
    return {"HARNESS_PROVIDER": wire.provider, "OPENAI_API_KEY": SECRET, "ANTHROPIC_API_KEY": SECRET}


def files() -> list[Path]:
    return [path for path in Path.home().rglob("*") if path.is_file()]


def holding() -> list[str]:
    return [path.name for path in files() if SECRET.encode() in path.read_bytes()]


def test_no_process_of_a_turn_shows_it(hs: Hs, serve: Serve, home: Path) -> None:
    write_tool("look", LOOK)
    write_servers(s=entry())
    server = serve(
        ANTHROPIC, bash(LOOK), use("look"), use("mcp__s__z_echo", text="x"),
        use("agent", prompt="look"), bash(LOOK), say("Seen."), say("Done."),
    )  # fmt: skip
    log = home / "log"

    answer = hs("--json", "go", env=keys(ANTHROPIC) | {"HARNESS_LOG": str(log)}, through=STARTED)

    assert answer.code == 0, answer.err
    assert len(server.requests) == 7
    assert SECRET in str(server.headers)
    sent = json.dumps(server.requests)
    assert "harness_lib.hs" in sent
    assert SECRET not in sent + answer.out + answer.err
    assert holding() == []
    assert SECRET not in log.read_text()


def test_no_error_shows_it(go: Go, hs: Hs, wire: Wire) -> None:
    now = (("retry-after", "0.01"),)
    refusals = [Step(status=500, headers=now), Step(status=401)]
    _, answer = go(*refusals, words=("--json", "go"), wire=wire, env=keys(wire))
    nowhere = hs("go", env={**keys(wire), "ANTHROPIC_API_URL": "nowhere", "OPENAI_API_URL": "nowhere"})

    assert (answer.code, nowhere.code) == (1, 1)
    assert SECRET not in answer.out + answer.err + nowhere.out + nowhere.err
    assert holding() == []


def test_a_stored_one_is_in_two_files_that_only_its_owner_reads(go: Go, hs: Hs) -> None:
    path = write(".auth.json", json.dumps({"openai": [{"type": "api_key", "key": SECRET}]}))
    path.chmod(0o600)
    server, answer = go(bash(LOOK), say("Done."))
    listed = hs("auth", "list")

    assert answer.out == "Done.\n", answer.err
    assert server.headers[0]["authorization"] == f"Bearer {SECRET}"
    assert SECRET not in json.dumps(server.requests) + listed.out
    assert sorted(holding()) == [".auth-cache.json", ".auth.json"]
    assert {path.stat().st_mode & 0o777 for path in files() if path.name in holding()} == {0o600}


def test_what_a_session_holds_only_its_owner_reads(done: Done) -> None:
    look = use("agent", prompt="look")
    thought = Step(thinking="hm", uses=bash("seq 1 20000").uses)
    steps, unmasked = (thought, look, say("Seen."), say("Done.")), ("sh", "-c", 'umask 0; exec "$@"', "sh")
    done(*steps, wire=ANTHROPIC, env=keys(ANTHROPIC), through=unmasked)
    store = at_home("sessions")
    modes = {path: path.stat().st_mode & 0o777 for path in (store, *store.rglob("*"))}
    assert {oct(mode) for path, mode in modes.items() if path.is_dir()} == {"0o700"}
    assert {path.name for path, mode in modes.items() if path.is_file() and mode != 0o600} == set()


# Of a provider in use and of others, of a login of Claude Code, of packs of the user's own.
KEYS = (
    *("OPENAI_API_KEY", "DEEPSEEK_API_KEY", "ZAI_AUTH_TOKEN"),
    *("ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "GEMINI_API_KEY", "MINE_KEY", "PROGRAM_TOKEN"),
)


@pytest.fixture
def packs() -> None:
    """Put two packs into home that are not in use: a variant, and a program that names its variables."""
    conf = "protocol=openai\nmodel=m\nurl=http://127.0.0.1:9/\nauth_env=MINE_KEY\n"
    write("plugins/mine/providers/mine.conf", conf)
    said = "PROGRAM_TOKEN  what it is asked with (required)\\nPROGRAM_URL  where"
    program = f'#!/bin/sh\n[ "$1" = --env ] && printf "{said}\\n" && exit\nexit 1\n'
    write_program("plugins/program/providers/program", program)


@pytest.mark.usefixtures("packs")
def test_no_key_of_any_provider_reaches_a_command_that_looks_for_it(hs: Hs, serve: Serve) -> None:
    look = bash("env; tr '\\0' '\\n' < /proc/$PPID/environ; cat /proc/$PPID/environ | wc -c")
    server = serve(CHAT, look, use("agent", prompt="look"), look, say("Seen."), say("Done."))
    given = {**dict.fromkeys(KEYS, SECRET), "PROGRAM_URL": "shown", "MY_OWN": "shown, too"}

    answer = hs("--provider=openai", "go", env=given, through=STARTED)

    assert answer.out == "Done.\n", answer.err
    shown = str(server.requests[1]["messages"][-1])
    assert "PROGRAM_URL=shown" in shown
    # It may be looked at there; what is not secret is.
    assert shown.count("MY_OWN=shown, too") == (2 if Path("/proc").exists() else 1)
    assert SECRET not in json.dumps(server.requests)
    assert holding() == []


@pytest.mark.usefixtures("packs")
def test_the_user_may_let_a_key_through_for_tests_that_need_it(hs: Hs, serve: Serve) -> None:
    look = bash("env | grep -c very-secret")
    server = serve(CHAT, look, use("agent", prompt="look"), look, say("Seen."), say("Done."))
    options = ("--provider=openai", "--keep-env", "GEMINI_API_KEY", "--keep-env=MINE_KEY")

    answer = hs(*options, "go", env=dict.fromkeys(KEYS, SECRET))

    assert answer.out == "Done.\n", answer.err
    assert [server.told(place) for place in (1, 3)] == ["2", "2"]
    assert hs("--keep-env", "A=B", "go").code == 2
