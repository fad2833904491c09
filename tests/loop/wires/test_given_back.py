"""What a host wants back of its answers it gets back, and no other host does."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.loop import follower
from tests.loop.conftest import ANTHROPIC, RESPONSES, WIRES, Hs, Serve, bodies, session_of
from tests.loop.in_process import started
from tests.loop.servers.script import Step, Use, say

pytestmark = pytest.mark.usefixtures("in_process")


def test_thinking_goes_back_as_it_came_to_its_own_model_only(serve: Serve, home: Path, project: Path) -> None:
    thought = Step(thinking="a deep thought", uses=(Use("bash", {"command": "true"}),))
    server = serve(ANTHROPIC, thought, say("Done."), say("Other."))
    run = started(home, project, ANTHROPIC, server)
    follower.follow(run)
    run.env["HARNESS_MODEL"] = "model-two"
    follower.follow(run)

    same, other = server.requests[1]["messages"][1], server.requests[2]["messages"][1]
    assert same["content"][0] == {"type": "thinking", "thinking": "a deep thought", "signature": "c2lnbmVk"}
    assert "a deep thought" not in str(other)


def test_reasoning_goes_back_encrypted(serve: Serve, home: Path, project: Path) -> None:
    thought = Step(thinking="a summary", text="Let me.", uses=(Use("bash", {"command": "true"}),))
    server = serve(RESPONSES, thought, say("Done."))

    follower.follow(started(home, project, RESPONSES, server))

    assert "c2VjcmV0" in [item.get("encrypted_content") for item in server.requests[1]["input"]]
    assert server.requests[0]["include"] == ["reasoning.encrypted_content"]


def test_an_edited_answer_is_told_as_it_was_edited(serve: Serve, home: Path, project: Path) -> None:
    server = serve(RESPONSES, Step(thinking="hm", text="Before."), say("Done."))
    run = started(home, project, RESPONSES, server)
    follower.follow(run)
    assert run.session
    path = run.session.files()[1]
    path.write_text(path.read_text(encoding="utf-8").replace("Before.", "After!!"), encoding="utf-8")
    run.session.append("user", {}, "go on")

    follower.follow(run)

    assert "After!!" in str(server.requests[1])
    assert "c2VjcmV0" not in str(server.requests[1])


def test_a_session_changes_the_wire_in_the_middle(hs: Hs, serve: Serve, home: Path) -> None:
    first, second, third = WIRES
    step = Step(thinking="hm", text="Let me.", uses=(Use("bash", {"command": "echo hello"}),))
    servers = [serve(wire, step, say("Done.")) for wire in (first, second, third)]
    hs("RUN it", env=first.environment(servers[0]))
    name = session_of(home).name

    for wire, server in ((second, servers[1]), (third, servers[2])):
        env = wire.environment(server) | {"HARNESS_PROVIDER": "openai", "HARNESS_MODEL": "m"}
        assert hs(name, "again", env=env).out == "Done.\n"

    assert "hello" in str(servers[2].requests[0])
    assert len(bodies(session_of(home))) == 12
