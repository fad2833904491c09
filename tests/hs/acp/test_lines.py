"""Lines of a client that are no messages: each gets its error reply, and the conversation goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.loop.environment import environment

PARSE_ERROR, INVALID_REQUEST = -32700, -32600
BAD = {
    "[]": INVALID_REQUEST,
    "42": INVALID_REQUEST,
    "null": INVALID_REQUEST,
    "{}": INVALID_REQUEST,
    '[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}]': INVALID_REQUEST,
    '{"id":[],"result":1}': INVALID_REQUEST,
    '{"id":0,"error":"no"}': INVALID_REQUEST,
    '{"id":1,"method":7}': INVALID_REQUEST,
    '{"method":': PARSE_ERROR,
    "\xff": PARSE_ERROR,
}


def test_a_line_that_is_no_message_gets_an_error_reply(home: Path, project: Path) -> None:
    hello = '{"jsonrpc":"2.0","id":"last","method":"initialize","params":{"protocolVersion":1}}'
    done = subprocess.run(
        [sys.executable, "-m", "harness_lib.hs", "acp"],
        cwd=project,
        env=environment({"HOME": str(home)}),
        input="\n".join([*BAD, "", hello, ""]).encode("latin-1"),
        capture_output=True,
        timeout=90,
        check=False,
    )

    *refused, answer = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr) == (0, b"")
    assert [(each["id"], each["error"]["code"]) for each in refused] == [
        (None, code) for code in BAD.values()
    ]
    assert answer["id"] == "last"
    assert answer["result"]["protocolVersion"] == 1
