"""The line of status: model, context, tokens, cost, and whether something is under way."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import CHECKOUT
from tests.hs.person import SLOW, person
from tests.loop.conftest import CHAT, Serve
from tests.loop.servers.script import Step, say
from tests.loop.source_files import write_models


def test_whether_something_is_under_way_is_seen_at_once(serve: Serve, project: Path) -> None:
    server = serve(CHAT, Step(silent=True), say("Done."))
    env = CHAT.environment(server) | {"PYTHONPATH": str(CHECKOUT)}

    with person(cwd=project, env=env, through=(*SLOW, "work")) as someone:
        someone.rests()
        someone.types("go\r")
        someone.has_on_screen("Ctrl-C: stop")
        someone.until(lambda: server.requests)
        someone.types("\x03")
        someone.has_on_screen("interrupted")
        someone.rests()
        someone.types("go on\r")
        someone.has_on_screen("Done.")
        someone.rests()
        assert someone.leaves("\x04") == 0


def test_the_status_tells_model_context_tokens_and_cost(serve: Serve, project: Path, home: Path) -> None:
    write_models(home / ".harness", "big- context=200000 price_in=1 price_out=2")
    server = serve(CHAT, say("One."), say("Two."))

    with person(cwd=project, env=CHAT.environment(server) | {"HARNESS_MODEL": "big-one"}) as someone:
        someone.has_on_screen("big-one  context 0 of 200k  tokens 0 in, 0 out  cost $0")
        someone.types("go\r")
        someone.has_on_screen("big-one  context 15 of 200k  tokens 10 in, 5 out  cost $0.00002")
        someone.types("/model other\r")
        someone.has_on_screen("other  context 15  tokens 10 in, 5 out  cost $0.00002")
        someone.types("go\r")
        someone.has_on_screen("other  context 15  tokens 20 in, 10 out  cost unknown")
        someone.leaves("\x04")


def test_the_status_tells_another_model_as_soon_as_there_is_one(serve: Serve, project: Path) -> None:
    server = serve(CHAT)
    env = CHAT.environment(server) | {"PYTHONPATH": str(CHECKOUT)}

    with person(cwd=project, env=env, through=(*SLOW, "work")) as someone:
        someone.has_on_screen(" gpt-4o  context 0")
        someone.types("/model gpt-4o-mini\r")
        someone.has_on_screen(" gpt-4o-mini  context 0")
        assert someone.leaves("\x04") == 0
