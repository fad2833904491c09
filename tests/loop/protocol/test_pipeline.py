"""A stage: which hooks it has, in which order, and what each of them reads, sees and leaves behind."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from harness_lib.loop import discovery, pipeline, runtime
from harness_lib.loop.failures import HookError
from harness_lib.loop.piped import Json
from harness_lib.loop.runtime import Runtime
from tests.loop.conftest import CHAT, Hs, Serve
from tests.loop.servers.script import say
from tests.loop.source_files import write


@pytest.fixture
def run(home: Path, project: Path) -> Runtime:
    """Return a run whose log is in home."""
    return runtime.start({**os.environ, "HARNESS_LOG": str(home / "log")}, project)


def hook(home: Path, name: str, text: str) -> Path:
    return write(home / ".harness" / "hooks.d" / name, f"#!/bin/sh\n{text}\n", 0o755)


def call(run: Runtime, stage: str, payload: Json | str) -> Json | str:
    discovery.refresh(run)
    return pipeline.call(run, stage, payload)


def test_without_hooks_a_stage_prints_what_it_reads(run: Runtime) -> None:
    assert call(run, "no-such-stage", '{"a":1}') == '{"a":1}'


def test_hooks_run_in_the_order_of_their_names_as_text(run: Runtime, home: Path) -> None:
    for name in ("100-c", "20-b", "3-d", "a"):
        hook(home, f"mine/{name}", f"cat; echo {name}")
    hook(home, "mine/z", """printf '{"said":"%s"}' "$(tr '\\n' ' ')\"""")

    assert call(run, "mine", "") == {"said": " 100-c 20-b 3-d a "}


def test_between_hooks_trailing_line_breaks_are_one(run: Runtime, home: Path) -> None:
    hook(home, "mine/10", "cat > /dev/null; printf 'x\\n\\n\\n'")
    hook(home, "mine/20", """printf '{"said":"%s"}' "$(od -An -c | tr -d ' ')\"""")

    assert call(run, "mine", "") == {"said": "x\n"}


def test_the_most_local_of_a_name_counts_and_only_executables_that_can_be_seen(
    run: Runtime, home: Path
) -> None:
    hook(home, "../plugins/p/hooks.d/mine/10-a", "echo no object")
    hook(home, "mine/10-a", "echo '{}'")
    hook(home, "mine/.20-hidden", "echo hidden")
    hook(home, "mine/30-plain", "echo plain").chmod(0o644)
    (home / ".harness" / "hooks.d" / "mine" / "40-directory").mkdir()

    assert call(run, "mine", "") == {}


def test_what_a_hook_writes_on_standard_error_goes_to_the_log(run: Runtime, home: Path) -> None:
    hook(home, "mine/10", "echo first >&2; cat")
    hook(home, "mine/20", "echo second >&2; cat")

    assert call(run, "mine", "{}") == {}
    assert (home / "log").read_text(encoding="utf-8") == "first\nsecond\n"


def test_a_hook_that_fails_ends_the_stage_with_what_it_printed_and_a_line_in_the_log(
    run: Runtime, home: Path
) -> None:
    path = hook(home, "mine/10", "echo half; exit 4")
    hook(home, "mine/20", "echo never")

    with pytest.raises(HookError) as failed:
        call(run, "mine", "{}")

    assert failed.value.result == "half"
    assert (home / "log").read_text(encoding="utf-8") == f"[harness] hook {path} exited 4 during mine\n"


def test_one_of_ours_that_fails_is_named_in_the_log(run: Runtime, home: Path) -> None:
    with pytest.raises(HookError):
        call(run, "tool_exec", "{}")

    logged = (home / "log").read_text(encoding="utf-8")
    assert logged == "[harness] hook tool_exec/10-exec failed during tool_exec: no tool calls came in\n"


def test_a_hook_knows_where_it_is(hs: Hs, serve: Serve, home: Path, project: Path) -> None:
    hook(home, "start/20-see", f"env > '{home}/seen'; cat")
    server = serve(CHAT, say("Done."))
    env = CHAT.environment(server)

    hs("go", env=env | {"HARNESS_MODEL": "model-one"})

    lines = (home / "seen").read_text(encoding="utf-8").splitlines()
    seen = dict(line.split("=", 1) for line in lines if "=" in line)
    (session,) = (home / ".harness" / "sessions").iterdir()
    assert {name: seen[name] for name in sorted(seen) if name.startswith(("HARNESS_", "SESSION_"))} == {
        "HARNESS_HOME": str(home / ".harness"),
        "HARNESS_LOG": "/dev/stderr",
        "HARNESS_MAX_TURNS": "100",
        "HARNESS_MODEL": "model-one",
        "HARNESS_PROVIDER": "openai",
        "HARNESS_ROOT": seen["HARNESS_ROOT"],
        "HARNESS_SESSION": str(session),
        "HARNESS_SESSIONS": str(session.parent),
        "HARNESS_SOURCES": seen["HARNESS_SOURCES"],
        "HARNESS_STAGE": "start",
        "HARNESS_VERSION": hs("version").out.removeprefix("harness ").strip(),
        "SESSION_DIR": str(session),
    }
    assert seen["HARNESS_SOURCES"].split(":")[-1] == str(home / ".harness")
    assert (Path(seen["HARNESS_ROOT"]) / "plugins" / "core").is_dir()
    assert seen["PWD"] == str(project)


def test_what_is_given_to_the_sources_stage_is_an_empty_object(run: Runtime, home: Path) -> None:
    hook(home, "sources/10-first", f"tee '{home}/given'")

    discovery.refresh(run)

    assert json.loads((home / "given").read_text(encoding="utf-8")) == {}
