"""The loop: it goes where `next_state` says, and nothing about the way is built in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.loop.conftest import CHAT, Hs, Serve, session_of
from tests.loop.protocol.conftest import events
from tests.loop.servers.script import Step, say
from tests.loop.source_files import write


def hook(home: Path, name: str, text: str) -> Path:
    return write(home / ".harness" / "hooks.d" / name, f"#!/bin/sh\n{text}\n", 0o755)


def prints(**said: object) -> str:
    return f"cat > /dev/null; echo '{json.dumps(said)}'"


def test_a_next_state_may_be_any_name_and_gets_the_rest(hs: Hs, serve: Serve, home: Path) -> None:
    hook(home, "start/50-elsewhere", prints(next_state="detour", answer=42))
    hook(home, "detour/10", f"tee '{home}/given' > /dev/null; " + prints(output="By the way."))

    answer = hs("go", env=CHAT.environment(serve(CHAT, say("never"))))

    assert (answer.code, answer.out) == (0, "By the way.\n"), answer.err
    assert json.loads((home / "given").read_text(encoding="utf-8")) == {"answer": 42}


def test_a_state_without_hooks_passes_through_and_is_the_last(hs: Hs, serve: Serve, home: Path) -> None:
    hook(home, "start/50-elsewhere", prints(next_state="nowhere", output="Passed."))

    answer = hs("go", env=CHAT.environment(serve(CHAT, say("never"))))

    assert (answer.code, answer.out) == (0, "Passed.\n"), answer.err


@pytest.mark.parametrize(
    ("stage", "garbage"),
    [
        ("sources", "that is all"),
        ("resolve", "[]"),
        ("start", ""),
        ("assemble", "42"),
        ("receive", '{"next_state":'),
        ("done", ""),
        ("error", "that is all"),
    ],
)
def test_a_hook_that_prints_no_json_object_ends_the_run_by_its_name(
    hs: Hs, serve: Serve, home: Path, stage: str, garbage: str
) -> None:
    # Behind ours, and before ours, which would read it as nothing.
    path = hook(home, f"{stage}/{'12' if garbage else '99'}-silent", f"cat > /dev/null; echo '{garbage}'")
    server = serve(CHAT, Step(status=400) if stage == "error" else say("Done."))

    answer = hs("go", env=CHAT.environment(server))

    assert (answer.code, answer.out) == (1, "")
    assert f"hook {path} printed no JSON object during {stage}" in answer.err


def test_the_output_of_done_is_what_is_printed(hs: Hs, serve: Serve, home: Path) -> None:
    hook(home, "done/50-shout", "tr a-z A-Z | sed s/OUTPUT/output/")

    assert hs("go", env=CHAT.environment(serve(CHAT, say("Done.")))).out == "DONE.\n"


def test_a_done_hook_that_passes_nothing_on_leaves_nothing_to_print(hs: Hs, serve: Serve, home: Path) -> None:
    hook(home, "done/50-silent", "cat > /dev/null; echo '{}'")

    answer = hs("go", env=CHAT.environment(serve(CHAT, say("Done."))))

    assert (answer.code, answer.out) == (0, "")
    assert answer.err.count("ended in the stage done") == 1


def test_an_empty_answer_is_no_lost_one(hs: Hs, serve: Serve) -> None:
    answer = hs("go", env=CHAT.environment(serve(CHAT, say(""))))

    assert (answer.code, answer.out) == (0, "")
    assert "ended in the stage" not in answer.err


def test_the_stage_error_reads_what_the_failing_hook_printed(hs: Hs, serve: Serve, home: Path) -> None:
    hook(home, "assemble/50-no", f"{prints(error='not now', more=1)}; exit 1")
    hook(home, "error/05-see", f"tee '{home}/given'")

    answer = hs("go", env=CHAT.environment(serve(CHAT, say("never"))))

    assert (answer.code, answer.out) == (1, "")
    assert "error: not now" in answer.err
    assert json.loads((home / "given").read_text(encoding="utf-8")) == {"error": "not now", "more": 1}


def test_an_error_hook_that_fails_ends_the_run(hs: Hs, serve: Serve, home: Path) -> None:
    hook(home, "assemble/50-no", "exit 1")
    hook(home, "error/05-no", "exit 1")

    answer = hs("go", env=CHAT.environment(serve(CHAT, say("never"))))

    assert (answer.code, answer.out) == (1, "")
    assert '{"type":"done"}' in events(session_of(home))


def test_sources_are_looked_for_before_every_state(hs: Hs, serve: Serve, home: Path) -> None:
    hook(home, "sources/50-count", f"echo x >> '{home}/count'; cat")

    hs("go", env=CHAT.environment(serve(CHAT, say("Done."))))

    # At the start, when the provider is known, and before each of start, assemble, send, receive and done.
    assert (home / "count").read_text(encoding="utf-8").count("x") == 7


def test_a_turn_with_an_error_of_the_provider_ends_with_its_words(hs: Hs, serve: Serve, home: Path) -> None:
    answer = hs("go", env=CHAT.environment(serve(CHAT, Step(status=400, said="no such thing"))))

    assert answer.code == 1
    (shown,) = [line for line in events(session_of(home)) if '"error"' in line]
    assert "no such thing" in json.loads(shown)["message"]
