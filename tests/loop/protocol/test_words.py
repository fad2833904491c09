"""The words of the command line, and whose sources, credentials and variants count."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.loop.conftest import CHAT, Go, Hs, Serve, session_of
from tests.loop.servers.script import bash, say
from tests.loop.source_files import at_home, write, write_provider, write_script


def test_every_command_of_the_protocol_is_there_with_a_line_about_it(hs: Hs) -> None:
    shown = hs("help").out.split("\nCommands:\n")[1].split("\n\n")[0]

    lines = [line.split(maxsplit=1) for line in shown.splitlines()]
    assert " ".join(name for name, _ in lines) == (
        "acp agent auth doctor help hook hooks provider repl resume session tool tools trust version"
    )
    assert hs("--help").out == hs("-h").out == hs("help").out
    assert hs("--version").out == hs("-v").out == hs("version").out


def test_help_says_what_was_found(hs: Hs) -> None:
    write_script("commands/ship", "echo Ships it")
    write_script("tools/mine", "echo Mine")
    provider = "#!/bin/sh\ncase $1 in --describe) echo Theirs;; --env) echo THEIR_KEY its key;; esac\n"
    write("providers/theirs", provider, 0o755)

    shown = hs("help").out

    for row in ("ship         Ships it", "theirs       Theirs", "    THEIR_KEY its key", "mine         Mine"):
        assert f"  {row}\n" in shown
    assert f"  {at_home()}\n" in shown
    assert all(name in shown for name in ("HARNESS_PROVIDER", "HARNESS_STREAM", "HARNESS_LOG"))


def test_tools_and_hooks_are_listed_as_the_protocol_does(hs: Hs) -> None:
    tool = write_script("tools/bash", "echo Mine")
    hooks = [write_script(f"{place}hooks.d/start/10-init", "cat") for place in ("plugins/p/", "")]

    assert f"  bash                 Mine  [{tool}]\n" in hs("tools").out
    assert hs("tools").out.count("  bash ") == 1
    assert hs("hooks", "start").out.splitlines() == [
        "  start/10-init  [built-in]", "  start/90-harness  [built-in]",
        *(f"  start/10-init  [{path}]" for path in hooks),
    ]  # fmt: skip
    assert hs("hooks", "nowhere").code == 2


def test_a_command_gets_the_remaining_words_and_the_sources(hs: Hs) -> None:
    text = '#!/bin/sh\necho "$HARNESS_SOURCES"\nfor word; do echo "[$word]"; done\nexit 9\n'
    write("commands/ship", text, 0o755)

    answer = hs("ship", "it now", "--fast")

    sources, *words = answer.out.splitlines()
    assert sources.split(":")[-1] == str(at_home())
    assert (answer.code, words) == (9, ["[it now]", "[--fast]"])


def test_a_command_that_cannot_be_started_is_named_with_what_is_wrong(hs: Hs) -> None:
    write("commands/ship", "#!/bin/sh\r\necho hello\r\n", 0o755)
    answer = hs("ship")
    assert answer.code == 7
    assert f"The command {at_home()}/commands/ship cannot be started: its first line ends in" in answer.err


def test_a_first_word_that_is_no_command_is_the_task_with_all_words(go: Go) -> None:
    server, _ = go(say("Fine."), words=("run", "the tests"))
    assert server.told(0) == "run the tests"


def test_agent_is_a_command_too_and_takes_a_session(go: Go, hs: Hs) -> None:
    server, _ = go(say("One."), say("Two."), words=("agent", "first"))
    hs("agent", session_of().name, "second")

    assert [said["content"] for said in server.requests[1]["messages"][1:]] == ["first", "One.", "second"]


def test_repl_without_the_user_is_a_mistake_and_no_task(go: Go) -> None:
    server, answer = go(say("never"), words=("repl",))
    assert (answer.code, answer.out, server.requests) == (2, "", [])
    assert "terminal" in answer.err


def test_an_answer_streams_into_a_pipe_when_asked(go: Go) -> None:
    # The answer that is printed at once is the one that the stage `done` has seen, this one is as it comes.
    _, answer = go(say("All\x1b[2J done."), env={"HARNESS_STREAM": "1"})
    assert answer.out == "All\ufffd[2J done.\n"


@pytest.mark.parametrize("nearest", [True, False])
def test_sessions_are_those_of_the_nearest_directory_that_has_some(
    go: Go, hs: Hs, project: Path, *, nearest: bool
) -> None:
    store = project / ".harness/sessions" if nearest else at_home("sessions")
    (project / ".harness" / ("sessions" if nearest else "tools")).mkdir(parents=True)
    inner = project / "a/b"
    inner.mkdir(parents=True)

    _, answer = go(say("Done."), cwd=inner)

    assert answer.out == "Done.\n", answer.err
    assert len(list(store.iterdir())) == 1
    assert hs("session", "dir", cwd=inner).out == f"{store}\n"
    assert hs("session", "dir", "any", cwd=inner).out == f"{store / 'any'}\n"


@pytest.mark.parametrize(("named", "sessions"), [("{}", ""), ("../other", "../other/sessions")])
def test_home_is_where_the_variable_says(go: Go, tmp_path: Path, named: str, sessions: str) -> None:
    other = tmp_path / "other"
    write(other / "prompts/10.md", "Be kind.")
    inner = 'cd / && cat "$HARNESS_HOME/prompts/10.md"; echo; ls "$HARNESS_SESSIONS"'
    env = {"HARNESS_HOME": named.format(other), "HARNESS_SESSIONS": sessions}
    server, _ = go(bash(inner), say("Done."), env=env)
    assert "Be kind." in server.requests[0]["messages"][0]["content"]
    (session,) = (other / "sessions").iterdir()
    assert server.told(1) == f"Be kind.\n{session.name}"
    assert not at_home().exists()


@pytest.mark.parametrize("place", ["project/.harness", "home/.harness/plugins/p"])
def test_a_sources_hook_of_a_project_or_a_pack_is_not_asked(hs: Hs, project: Path, place: str) -> None:
    root, _, rest = place.partition("/")
    directory = {"project": project, "home": Path.home()}[root] / rest
    spied = project.parent / "spied"
    write_script(directory / "hooks.d/sources/50-spy", f'touch "{spied}"; cat')

    assert hs("trust").code == 0
    assert hs("tools").code == 0

    assert not spied.exists()


@pytest.mark.parametrize(("text", "code"), [("exit 4", 3), ("echo no list", 1), ("echo '{}'", 3)])
def test_a_sources_hook_that_fails_ends_the_start(hs: Hs, text: str, code: int) -> None:
    write_script("hooks.d/sources/50-no", text)

    answer = hs("tools")

    assert (answer.code, answer.out) == (code, "")
    assert "sources" in answer.err


def test_a_program_goes_before_a_variant_of_its_name(hs: Hs, serve: Serve) -> None:
    server = serve(CHAT, say("never"))
    write_provider("both", f"{server.address}{CHAT.path}")
    write_script("providers/both", "echo model=of-the-program")

    chosen = hs("hook", "resolve/30-defaults", stdin='{"provider":"both","model":""}').out

    assert json.loads(chosen) == {"provider": "both", "model": "of-the-program"}


@pytest.mark.parametrize(
    ("expires", "expected"),
    [(None, "groq"), ("0", "groq"), (str(int(time.time()) + 3600), "groq"), ("1000", "")],
    ids=["never", "zero", "in an hour", "long ago"],  # not the moment: each worker has its own
)
def test_a_variant_is_ready_with_a_credential_that_has_not_expired(
    hs: Hs, expires: str | None, expected: str
) -> None:
    entry = {"type": "api_key", "key": "k"} | ({"expires_at": expires} if expires else {})
    write(".auth.json", json.dumps({"groq": [entry]}), 0o600)

    chosen = json.loads(hs("hook", "resolve/20-detect", stdin='{"provider":"","model":""}').out)

    assert chosen.get("provider", "") == expected


def test_local_credentials_are_those_of_the_nearest_directory(hs: Hs, project: Path) -> None:
    vault = '#!/bin/sh\necho "{\\"type\\":\\"api_key\\",\\"key\\":\\"k-$HARNESS_AUTH_PROVIDER\\"}"\n'
    write("hooks.d/auth-set/10-vault", vault, 0o755)
    (project / ".harness").mkdir()
    inner = project / "a"
    inner.mkdir()

    assert hs("auth", "set", "groq", "--local", cwd=inner).code == 0

    path = project / ".harness/.auth.json"
    assert json.loads(path.read_text()) == {"groq": [{"type": "api_key", "key": "k-groq"}]}
    assert path.stat().st_mode & 0o777 == 0o600
    assert not at_home(".auth.json").exists()
    assert hs("auth", "rm", "nobody", "0", "--local", cwd=inner).code == 0
    assert hs("auth", "rm", "groq", "0", "--local", cwd=inner).code == 0
    assert json.loads(path.read_text()) == {}


def test_a_credential_set_here_is_used_here(go: Go, hs: Hs, project: Path) -> None:
    vault = '#!/bin/sh\necho "{\\"type\\":\\"api_key\\",\\"key\\":\\"k-local\\"}"\n'
    write("hooks.d/auth-set/10-vault", vault, 0o755)
    (project / ".harness").mkdir()
    hs("auth", "set", "openai", "--local")
    server, before = go(say("Done."))
    hs("trust")
    after = hs("go")

    assert "hs trust" in before.err
    assert after.out == "Done.\n", after.err
    assert server.headers[1]["authorization"] == "Bearer k-local"
