"""What a host refuses, and who gets a key: what may pass is asked again, all else is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.loop import follower
from harness_lib.loop.follower import Ending
from tests.loop.conftest import CHAT, Hs, Serve, Wire
from tests.loop.in_process import started
from tests.loop.servers.script import Step, say

pytestmark = pytest.mark.usefixtures("in_process")


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (400, "try another model (--model)"),
        (401, "Check the key."),
        (403, "Check the key and what it may use."),
        (404, "Check the address and the model."),
        (413, "The request is too large."),
        (422, "try another model (--model)"),
    ],
)
def test_what_will_not_pass_is_asked_once(
    serve: Serve, wire: Wire, home: Path, project: Path, status: int, advice: str
) -> None:
    server = serve(wire, Step(status=status, said="because of this"))
    run = started(home, project, wire, server)

    ending = follower.follow(run)

    assert ending.failed
    assert str(status) in ending.output
    assert "because of this" in ending.output
    assert advice in ending.output
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
def test_what_may_pass_is_asked_again_until_it_has(
    serve: Serve, wire: Wire, home: Path, project: Path, status: int
) -> None:
    server = serve(wire, Step(status=status), Step(status=status), say("At last."))
    run = started(home, project, wire, server)

    assert follower.follow(run) == Ending("At last.", failed=False)


def test_a_limit_of_hours_is_not_waited_for(serve: Serve, wire: Wire, home: Path, project: Path) -> None:
    server = serve(wire, Step(status=429, headers=(("retry-after", "7200"),)), say("never"))
    run = started(home, project, wire, server)

    assert follower.follow(run).failed
    assert len(server.requests) == 1


def test_a_redirect_gets_no_key(serve: Serve, wire: Wire, home: Path, project: Path) -> None:
    other = serve(wire, say("caught"))
    server = serve(wire, Step(status=307, headers=(("location", f"{other.address}{wire.path}"),)))
    run = started(home, project, wire, server)

    ending = follower.follow(run)

    assert ending.failed
    assert other.address in ending.output
    assert other.requests == []


def test_a_variant_of_home_speaks_through_its_protocol(hs: Hs, serve: Serve, home: Path) -> None:
    server = serve(CHAT, say("Hello from there."))
    providers = home / ".harness" / "providers"
    providers.mkdir(parents=True)
    conf = f"protocol=openai\nmodel=big-one\nurl={server.address}{CHAT.path}\nauth_env=THERE_KEY\n"
    conf += "max_tokens_field=max_completion_tokens\nmax_tokens=77\n"
    (providers / "there.conf").write_text(conf, encoding="utf-8")

    refused = hs("go", env={"HARNESS_PROVIDER": "there"})
    answer = hs("go", env={"THERE_KEY": "sesame"})

    assert (refused.code, "THERE_KEY is not set" in refused.err) == (7, True)
    assert (answer.code, answer.out) == (0, "Hello from there.\n"), answer.err
    assert server.headers[0]["authorization"] == "Bearer sesame"
    assert (server.requests[0]["model"], server.requests[0]["max_completion_tokens"]) == ("big-one", 77)


@pytest.mark.parametrize("key", ["two\nlines", "sch\u00f6n"])
def test_a_key_that_no_header_can_carry_is_said_and_not_shown(
    serve: Serve, home: Path, project: Path, key: str
) -> None:
    server = serve(CHAT, say("never"))
    run = started(home, project, CHAT, server, OPENAI_API_KEY=key)

    ending = follower.follow(run)

    assert ending.failed
    assert "no header can carry" in ending.output
    assert key not in ending.output
    assert server.requests == []


def test_a_variant_without_an_address_sends_its_key_nowhere(hs: Hs, home: Path) -> None:
    providers = home / ".harness" / "providers"
    providers.mkdir(parents=True)
    (providers / "there.conf").write_text("protocol=openai\nmodel=m\nauth_env=THERE_KEY\n", encoding="utf-8")

    answer = hs("go", env={"THERE_KEY": "sesame"})

    assert answer.code == 7
    assert "no url=" in answer.err
