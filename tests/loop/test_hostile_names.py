"""Names that are paths lead nowhere: not a tool's, a session's, a provider's, a hook's or a skill's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loop.conftest import CHAT, Hs, Serve, Wire, bodies, session_of
from tests.loop.servers.script import Step, Use, say
from tests.loop.source_files import write

NAMES = ["../outside", "..", "", "{}/outside"]


@pytest.fixture
def outside(home: Path, project: Path) -> Path:
    """Put what a path could lead to beside each directory of names: a session, a program, a provider."""
    source = home / ".harness"
    for place in (source, home):
        write(place / "outside/session.conf", f"id=outside\ncwd={project}\n")
        write(place / "outside/messages/0001-user.md", "---\nrole: user\n---\nthe secret\n")
        write(place / "outside/SKILL.md", "---\nname: o\ndescription: o\n---\nthe secret\n")
        write(place / "outside.conf", "protocol=openai\nmodel=m\nurl=http://127.0.0.1:9/v1\n")
    for directory in ("tools", "commands", "providers", "sessions", "skills", "hooks.d/start"):
        (source / directory).mkdir(parents=True)
    program = f'#!/bin/sh\ntouch "{project.parent}/ran"\necho the secret\n'
    for path in (source / "run", home / "run"):
        write(path, program, 0o755)
    return home


def tree(home: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in home.rglob("outside/**/*") if path.is_file()}


@pytest.mark.parametrize("name", NAMES)
def test_a_word_of_the_command_line(hs: Hs, outside: Path, project: Path, name: str) -> None:
    named = name.format(outside)
    before = tree(outside)

    answers = [
        hs(*words)
        for words in (
            ["session", "show", named], ["session", "export", named], ["session", "rm", named],
            ["session", "fork", named], ["--resume", named, "go on"], ["hook", f"start/{named}"],
            ["tool", named, "--exec"], ["provider", named, "--ready"], ["auth", "set", named],
        )
    ]  # fmt: skip

    assert {answer.code for answer in answers} == {2}
    assert not any("the secret" in answer.out + answer.err for answer in answers)
    assert tree(outside) == before
    assert not (project.parent / "ran").exists()


@pytest.mark.parametrize("name", ["../run", "../../run", "{}/run", "hooks.d/../../run"])
def test_a_name_that_a_model_says(hs: Hs, serve: Serve, outside: Path, project: Path, name: str) -> None:
    named = name.format(outside)
    step = Step(uses=(Use(named, {}), Use("skill", {"name": "../../outside"}), Use("skill", {"name": named})))
    server = serve(CHAT, step, say("Done."))

    answer = hs("go", env=CHAT.environment(server))

    assert answer.out == "Done.\n", answer.err
    results = [body for file, body in bodies(session_of(outside)) if "tool_result" in file]
    assert len(results) == 3
    assert all("not found" in body for body in results)
    assert not (project.parent / "ran").exists()


@pytest.mark.parametrize(
    "name", ["functions.bash", "../run", "a b", "a\nb", "a\x00b", "Ärger", "x" * 65, "```", ""]
)
def test_a_name_that_no_host_takes_back(hs: Hs, serve: Serve, wire: Wire, home: Path, name: str) -> None:
    """A host refuses every later request in which a call has one, though its own model has said it."""
    server = serve(wire, Step(thinking="hm", uses=(Use(name, {"x": "y"}),)), say("Done."), say("Again."))

    answer = hs("go", env=wire.environment(server))

    assert answer.out == "Done.\n", answer.err
    (result,) = [body for file, body in bodies(session_of(home)) if "tool_result" in file]
    assert "not found" in result
    assert hs("--continue", "and now?", env=wire.environment(server)).out == "Again.\n"


@pytest.mark.parametrize("name", ["../outside", "../../outside", "{}/outside", ".."])
def test_a_provider_of_the_environment(hs: Hs, outside: Path, project: Path, name: str) -> None:
    answer = hs("go", env={"HARNESS_PROVIDER": name.format(outside)})

    assert answer.code in {1, 7}
    assert "There is no provider" in answer.err
    assert not (project.parent / "ran").exists()


def test_a_session_whose_settings_are_paths(hs: Hs, serve: Serve, outside: Path) -> None:
    conf = "id=../../outside\nmodel=../../m\nprovider=../outside\nparent=../outside\ncwd=/no/such/place\n"
    write(outside / ".harness/sessions/one/session.conf", conf)
    before = tree(outside)
    server = serve(CHAT, say("Done."))

    refused = hs("one", "go", env=CHAT.environment(server))
    answer = hs("--provider", "openai", "--resume", "one", "go", env=CHAT.environment(server))
    removed = hs("session", "rm", "one")

    assert (refused.code, answer.code, removed.code) == (7, 0, 0), answer.err
    assert "There is no provider ../outside" in refused.err
    assert tree(outside) == before
