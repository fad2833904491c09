"""A fake Claude Code on the PATH, and its plays: its events, as the real one prints them."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PROGRAM
from tests.hs.acp.client import editor, pytest_pyfunc_call
from tests.system.git.gitrepo import put

__all__ = ["editor", "pytest_pyfunc_call"]
Json = dict[str, Any]

INIT: Json = {"type": "system", "subtype": "init", "session_id": "c-1", "model": "claude-opus-5-5"}


def streamed(*events: Json) -> list[Json]:
    return [{"type": "stream_event", "event": event, "parent_tool_use_id": None} for event in events]


def message(*blocks: Json, stop: str = "end_turn") -> list[Json]:
    """Return the events of one message of the model."""
    usage = {"input_tokens": 20, "output_tokens": 5, "cache_read_input_tokens": 3}
    start = {"type": "message_start", "message": {"model": "claude-opus-5-5", "usage": usage}}
    events: list[Json] = [start]
    for index, block in enumerate(blocks):
        empty: Json
        if block["type"] == "text":
            delta = {"type": "text_delta", "text": block["text"]}
            empty = {"type": "text", "text": ""}
        else:
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            empty = {**block, "input": {}}
        events += [
            {"type": "content_block_start", "index": index, "content_block": empty},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    end = {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 5}}
    return streamed(*events, end, {"type": "message_stop"})


def text(words: str) -> list[Json]:
    return message({"type": "text", "text": words})


def call(name: str, call_id: str = "toolu_1", **arguments: object) -> list[Json]:
    block = {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
    return message(block, stop="tool_use")


def asks(name: str, call_id: str = "toolu_1", **arguments: object) -> Json:
    """Return the question whether a call may run."""
    request = {"subtype": "can_use_tool", "tool_name": name, "input": arguments, "tool_use_id": call_id}
    return {"asks": request}


def came_to(result: object, call_id: str = "toolu_1", *, error: bool = False) -> Json:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": result, "is_error": error}
    return {"type": "user", "message": {"role": "user", "content": [block]}, "parent_tool_use_id": None}


def result(words: str = "", *, cost: float | None = 0.5, **more: object) -> Json:
    event: Json = {"type": "result", "subtype": "success", "is_error": False, "result": words, **more}
    return event if cost is None else {**event, "total_cost_usd": cost}


def answer(words: str, cost: float = 0.5) -> list[Json]:
    return [INIT, *text(words), result(words, cost=cost)]


@dataclass(frozen=True)
class Stage:
    """The fake, installed in `place`."""

    place: Path

    def plays(self, *runs: list[Json]) -> None:
        (self.place / "play.json").write_text(json.dumps(runs))

    @property
    def heard(self) -> list[Json]:
        lines = (self.place / "heard.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    @property
    def starts(self) -> list[Json]:
        return [heard for heard in self.heard if "argv" in heard]

    @property
    def prompts(self) -> list[str]:
        return [heard["said"]["message"]["content"] for heard in self.heard if "said" in heard]

    @property
    def answers(self) -> list[Json]:
        return [heard["answered"]["response"]["response"] for heard in self.heard if "answered" in heard]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    place = tmp_path / "installed"
    place.mkdir()
    source = Path(__file__).with_name("fake.py").read_text()
    program = place / "claude"
    put(program, PROGRAM + source, executable=True)
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
    assert shutil.which("claude") == str(program)
    return Stage(place)
