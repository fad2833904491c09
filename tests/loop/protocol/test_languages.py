"""Plugins that are programs, of each kind, in bash, in Python and in node; tools are in test_foreign."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.loop.conftest import CHAT, Hs, Serve, bodies, session_of
from tests.loop.protocol import programs
from tests.loop.servers.script import Step, say, use
from tests.loop.source_files import write


@pytest.fixture(params=["bash", "python3", "node"])
def language(request: pytest.FixtureRequest) -> str:
    """Each language in turn."""
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return str(request.param)


def test_a_gate_lets_one_call_through_and_another_not(
    hs: Hs, serve: Serve, home: Path, project: Path, language: str
) -> None:
    write(home / ".harness/hooks.d/tool_gate/10-gate", programs.GATE[language], 0o755)
    server = serve(
        CHAT, use("bash", command="touch allowed"), use("bash", command="touch forbidden"), say("Done.")
    )

    answer = hs("go", env=CHAT.environment(server))

    assert answer.out == "Done.\n", answer.err
    assert [path.name for path in project.iterdir()] == ["allowed"]
    assert bodies(session_of(home))[4][1].strip() == f"error: denied: no, says {language}"


def test_a_hook_in_each_stage_reads_what_the_protocol_says(
    hs: Hs, serve: Serve, home: Path, language: str
) -> None:
    # The first key of what a hook reads that stands before all of ours, and of one behind them.
    # Those of the stage `sources` are called so often that they have a test of their own.
    first = {
        "resolve": ("provider", "provider"), "start": ("", "next_state"),
        "assemble": ("", "messages"), "send": ("messages", "id"), "receive": ("id", "next_state"),
        "tool_exec": ("tool_calls", "call_id"), "tool_gate": ("id", "id"),
        "tool_done": ("call_id", "next_state"),
        "error": ("error", "output"), "done": ("output", "output"),
    }  # fmt: skip
    for stage in first:
        for place in ("05-before", "95-behind"):
            write(home / f".harness/hooks.d/{stage}/{place}", programs.HOOK[language], 0o755)
    seen = home / "seen"
    env = {"SEEN": str(seen)}

    fine = hs("go", env=CHAT.environment(serve(CHAT, use("bash", command="true"), say("Done."))) | env)
    wrong = hs("go", env=CHAT.environment(serve(CHAT, Step(status=400))) | env)

    assert (fine.code, fine.out, wrong.code) == (0, "Done.\n", 1), fine.err + wrong.err
    lines = seen.read_text(encoding="utf-8").replace('"', "").replace(":", "").splitlines()
    assert {" ".join(line.split()) for line in lines} == {
        f"{stage} {key}".strip() for stage, keys in first.items() for key in keys
    }


def test_a_provider_pack_answers_without_us(hs: Hs, home: Path, language: str) -> None:
    pack = home / ".harness/plugins/echo"
    write(pack / "providers/echo", programs.PROVIDER[language], 0o755)
    write(pack / "hooks.d/assemble/10-messages", programs.MESSAGES[language], 0o755)
    write(pack / "hooks.d/receive/10-save", programs.SAVE[language], 0o755)

    answer = hs("say this")

    assert (answer.code, answer.out) == (0, "echo-1: say this\n"), answer.err
    assert "  echo         Repeats\n      ECHO_KEY  none is needed\n" in hs("help").out


def test_a_command_takes_the_place_of_the_task(hs: Hs, home: Path, language: str) -> None:
    write(home / ".harness/commands/ship", programs.COMMAND[language], 0o755)

    answer = hs("ship", "it", "now")

    assert (answer.code, answer.out) == (9, "shipped it now\n")
    assert "  ship         Ships it\n" in hs("help").out


def test_a_sources_hook_names_another_source(hs: Hs, home: Path, tmp_path: Path, language: str) -> None:
    write(home / ".harness/hooks.d/sources/50-team", programs.SOURCES[language], 0o755)
    write(tmp_path / "team/commands/hail", "#!/bin/sh\necho hail\n", 0o755)

    assert hs("hail", env={"TEAM": str(tmp_path / "team")}).out == "hail\n"
