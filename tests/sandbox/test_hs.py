"""The tools of `hs` in the sandbox: calls that the user has not agreed to, with each engine that starts."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

import pytest

from harness_lib.system.processes import sandbox
from tests.conftest import CHECKOUT
from tests.loop.conftest import (
    CHAT,
    Conversation,
    Done,
    Hs,
    Serve,
    bodies,
    conversation,
    done,
    go,
    hs,
    serve,
    served,
    session_of,
)
from tests.loop.servers.script import say, use
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put, sh

__all__ = ["conversation", "done", "go", "hs", "serve", "served"]
RULES = {"permissions": {"allow": ["Bash(mkdir:*)"]}}


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Path:
    """Return a repository, beside a home with secrets."""
    put(home / ".ssh/id_x", "a key")
    put(home / ".codex/auth.json", "a login")
    put(home / ".docker/run/note", "beside a socket")
    made = tmp_path / "project with a space"
    made.mkdir()
    sh(made, "init", "-q", "-b", "main")
    return made


def test_a_call_that_the_user_has_not_agreed_to_is_confined(
    each_engine: str, done: Done, home: Path, project: Path
) -> None:
    put(home / ".harness/settings.json", json.dumps(RULES))
    work = "test -z $GH_TOKEN && touch made && git add -A && git commit -qm Made && git log --format=%s"
    calls = {
        "secrets": use("bash", command="cat ~/.ssh/id_x ~/.codex/auth.json"),
        "written": use("bash", command="echo x > ~/evil"),
        "edited": use("write_file", path="~/evil", content="x"),
        "beside a socket": use("read_file", path="~/.docker/run/note"),
        "a hook": use("write_file", path=".git/hooks/pre-commit", content="x"),
        "work": use("bash", command=work),
        "kept": use("bash", command="echo kept > $TMPDIR/note"),
        "read": use("bash", command="cat $TMPDIR/note; printenv HARNESS_SANDBOXED_BY"),
        "settings": use("bash", command="git config core.fsmonitor ./x"),
        "agreed": use("bash", command=f"mkdir {home}/agreed"),
    }
    _, answer = done(*calls.values(), say("Done."), env={"HARNESS_SANDBOX": each_engine, "GH_TOKEN": "hub"})
    assert answer.err.count("hs: sandbox: ") == 1
    messages = bodies(session_of(home))
    results = [text for name, text in messages if "tool" in name]
    said = dict(zip(calls, results, strict=True))
    assert "denied: read ~/.ssh/id_x" in said["secrets"]
    assert not {"a key", "a login"} & set(said["secrets"].splitlines())
    assert "denied: write ~/evil" in said["written"]
    for name in ("edited", "beside a socket", "a hook"):
        assert "error: the sandbox denied: " in said[name]
    assert not (home / "evil").exists()
    # What the user's next command of git runs; Landlock cannot forbid a part of what may be written.
    assert ("fsmonitor" in (project / ".git/config").read_text()) is (each_engine == "nono")
    assert said["work"].strip() == "Made"
    assert said["read"].split() == ["kept", each_engine]
    assert (home / "agreed").is_dir()


@pytest.mark.usefixtures("project")
def test_a_confined_command_begins_when_it_is_noted(done: Done, home: Path) -> None:
    if why := sandbox.find(os.environ, ["nono"])[1]:
        pytest.skip(why)
    calls = (use("bash", command="echo $$; cat $SESSION_DIR/*.running"), say("Done."))
    _, answer = done(*calls, env={"HARNESS_SANDBOX": "nono"})
    (result,) = (text for name, text in bodies(session_of(home)) if "tool" in name)
    own, noted, *_ = result.split()
    assert own == noted, (result, answer.err)


def test_a_list_is_worked_off_in_the_sandbox(engine: str, done: Done, workshop: Workshop, home: Path) -> None:
    task = workshop.file_task("one")
    verbs = ("start", "claim", "finish", "validate --all --committed", "stop")
    typed = [f"{shlex.quote(sys.executable)} -m harness_lib {verb}" for verb in verbs]
    typed.insert(2, "echo done > one")
    _, answer = done(
        use("bash", command=" && ".join(typed)),
        say("Done."),
        cwd=workshop.top,
        env={"HARNESS_SANDBOX": engine, "PYTHONPATH": str(CHECKOUT)},
    )
    assert workshop.statuses() == {task: "completed"}, answer.err
    # `/tmp` is not its own there, and nobody needs to hear that at every verb.
    (_, result), *_ = [each for each in bodies(session_of(home)) if "tool" in each[0]]
    assert "legacy agents" not in result


@pytest.mark.usefixtures("project")
def test_what_the_user_says_yes_to_runs_outside(conversation: Conversation, home: Path) -> None:
    with conversation(
        use("bash", command="echo x > ~/asked"),
        say("Done."),
        args=("--approve", "ask"),
        task="go",
        env={"HARNESS_SANDBOX": "auto"},
    ) as user:
        user.types("y\n", when="or say why not")
    assert (home / "asked").exists()


@pytest.mark.usefixtures("project")
def test_hs_refuses_to_work_without_a_sandbox_that_is_required(hs: Hs, home: Path) -> None:
    (home / "bin").mkdir()
    env = {"OPENAI_API_URL": "http://127.0.0.1:9/v1/chat/completions"}
    said = hs("--sandbox", "bubblewrap", "go", env={**env, "PATH": str(home / "bin")})
    assert (said.code, "bwrap is not on the PATH" in said.err) == (7, True)
    put(home / ".harness/settings.conf", "sandbox=perhaps\n")
    said = hs("go", env={**env, "HARNESS_SANDBOX": ""})
    assert (said.code, "sandbox=perhaps must be one of off, auto" in said.err) == (3, True)


def test_inside_the_sandbox_of_a_run_hs_starts_none_of_its_own(
    engine: str, workshop: Workshop, home: Path, serve: Serve
) -> None:
    server = serve(CHAT, use("bash", command="touch ~/evil; touch made; exit 1"), say("Done."))
    (home / ".cache").mkdir()
    workshop.add("Make", "test -f made")
    env = {
        **CHAT.environment(server),
        "HARNESS_PROVIDER": "openai",
        "HARNESS_LOG": f"{home}/.cache/log",
        "HARNESS_SESSIONS": f"{home}/.cache/s",
    }
    agent = f"{shlex.quote(sys.executable)} -m harness_lib.hs --approve auto -p go"
    workshop.ends(0, "--sandbox", engine, agent=agent, **env)
    assert f"sandbox: that of the program which started hs ({engine})" in (home / ".cache/log").read_text()
    assert not (home / "evil").exists()


def false_bwrap(home: Path, ending: str) -> dict[str, str]:
    """Return an environment whose `bwrap` notes that it was tried, and then does `ending`."""
    program = put(home / "bin/bwrap", f"#!/bin/sh\necho $$ >> {home}/tried\n{ending}\n", executable=True)
    return {"HARNESS_SANDBOX": "auto", "PATH": f"{program.parent}:{os.environ['PATH']}"}


def test_a_sandbox_is_tried_once_and_only_where_a_command_is_to_run(done: Done, home: Path) -> None:
    env = false_bwrap(home, "exit 1")
    done(say("Done."), env=env)
    assert not (home / "tried").exists()
    _, answer = done(use("bash", command="echo 1"), use("bash", command="echo 2"), say("Done."), env=env)
    assert answer.err.count("hs: sandbox: ") == 1
    assert len((home / "tried").read_text().split()) == 1


def test_nothing_is_tried_where_no_sandbox_is_wanted(done: Done, home: Path) -> None:
    env = false_bwrap(home, "exit 1")
    done(use("bash", command="echo hi"), say("Done."), env={**env, "HARNESS_SANDBOX": "off"})
    assert not (home / "tried").exists()
