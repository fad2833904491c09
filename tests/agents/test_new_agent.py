"""A new agent is one file and its name in the registry: it is recognised, driven, and given hooks."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from tests.run_to_end import run_to_end

CHECKOUT = Path(__file__).parents[2]
GOOSE = '''
"""Goose."""

from __future__ import annotations

from harness_lib.agents import adapter, stream

SIGNS = adapter.Signs("goose", variables=("GOOSE",), session="GOOSE_SESSION", fields=("gooseId",))
HOOKS = adapter.Host(
    name="goose",
    title="Goose",
    files={"user": (".goose/hooks.json",)},
    events={"Stop": "onHonk"},
    trust={"user": "none is needed."},
    answers={"block": {"honk": adapter.TEXT}},
)


def launch(model, extra):
    return adapter.Launch(("goose", *extra))


def read(report, line, now):
    return stream.stray(report, line)


ADAPTER = adapter.Adapter("goose", "Goose", "goose", launch, read)
'''
TRY = """
import json, os, sys
from harness_lib.agents import registry
from harness_lib.hookinstall import entries
from harness_lib.hookio import payload
from harness_lib.hookio.payload import Answer
from harness_lib.system.processes import owner

host = registry.HOSTS["goose"]
said = payload.Payload("Stop", {"gooseId": "1", "hook_event_name": "onHonk"})
print(json.dumps({
    "agent": owner.in_agent(os.environ),
    "session": owner.agent_session(os.environ),
    "launch": registry.named("goose").launch(None, ()).argv,
    "entries": list(entries.by_event(host)),
    "event": said.event,
    "host": payload.host("", {}, said),
    "answer": payload.speak(Answer("block", "go on"), "Stop", "goose"),
}))
"""


def test_a_new_agent_is_one_file_and_its_name_in_the_registry(tmp_path: Path) -> None:
    for name in ("harness_lib", "hooks"):
        shutil.copytree(CHECKOUT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    agents = tmp_path / "harness_lib/agents"
    (agents / "goose.py").write_text(GOOSE)
    registry = agents / "registry.py"
    text = registry.read_text()
    for before, after in (
        ("import claude,", "import claude, goose,"),
        ("AGENTS = (claude,", "AGENTS = (claude, goose,"),
    ):
        assert text.count(before) == 1
        text = text.replace(before, after)
    registry.write_text(text)

    done = run_to_end(
        [sys.executable, "-c", TRY],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "GOOSE": "1", "GOOSE_SESSION": "honk"},
    )

    assert done.stderr == ""
    assert json.loads(done.stdout) == {
        "agent": "goose",
        "session": "honk",
        "launch": ["goose"],
        "entries": ["onHonk"],
        "event": "Stop",
        "host": "goose",
        "answer": [{"honk": "go on"}, "", 0],
    }
