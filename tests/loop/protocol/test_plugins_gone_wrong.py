"""Plugins that print JSON of another shape: left out or said, and never a bug of ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.loop.conftest import CHAT, Hs, Serve
from tests.loop.servers.script import say, use
from tests.loop.source_files import write

NO_SCHEMAS = [
    {"name": "t", "input_schema": "x"},
    {"name": "t", "description": 5},
    {"name": "t", "input_schema": {"type": "object", "required": [1, {}]}},
    {"name": "t", "input_schema": {"type": "object", "properties": ["a"]}},
]


@pytest.mark.parametrize("schema", NO_SCHEMAS, ids=str)
def test_a_schema_of_another_shape_leaves_its_tool_out(
    hs: Hs, serve: Serve, home: Path, schema: dict[str, object]
) -> None:
    text = f"#!/bin/sh\ncase $1 in --schema) echo '{json.dumps(schema)}' ;; *) echo ran ;; esac\n"
    write(home / ".harness/tools/t", text, 0o755)
    server = serve(CHAT, use("t", a=1), say("Done."))

    answer = hs("go", env=CHAT.environment(server))

    assert answer.out == "Done.\n", answer.err
    assert answer.err.count("left out") == 1
    assert "t" not in [tool["function"]["name"] for tool in server.requests[0]["tools"]]


@pytest.mark.parametrize(
    "shape", [{"messages": "abc"}, {"messages": [1]}, {"tools": "x"}, {"tools": [1]}], ids=str
)
def test_a_payload_of_another_shape_is_the_hooks_error(
    hs: Hs, serve: Serve, home: Path, shape: dict[str, object]
) -> None:
    text = f"#!/bin/sh\ncat > /dev/null\necho '{json.dumps({**shape, 'next_state': 'send'})}'\n"
    write(home / ".harness/hooks.d/assemble/90-else", text, 0o755)
    server = serve(CHAT, say("never"))

    answer = hs("go", env=CHAT.environment(server))

    assert (answer.code, server.requests) == (1, [])
    assert f"ended with {next(iter(shape))} that are no list of objects" in answer.err
