"""Stands for a program that is forked, with its streams: `python fork_relay.py ADDRESS PROGRAM ARGS`."""

from __future__ import annotations

import array
import json
import os
import socket
import sys

TYPE_CHECKING = False  # importing `typing` costs more than all of this
if TYPE_CHECKING:
    from typing import Any, TextIO


def start(address: str, streams: list[int], asked: dict[str, Any]) -> TextIO:
    """Have a program started; return where its process id is told, and at its end its exit status.

    Closing that ends it, too.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", streams))
        connection.sendmsg([b" "], [rights])
        connection.sendall(f"{json.dumps(asked)}\n".encode())
        return connection.makefile("r", encoding="ascii")


if __name__ == "__main__":
    _what = {"program": sys.argv[2], "args": sys.argv[3:], "cwd": os.getcwd(), "env": dict(os.environ)}  # noqa: PTH109
    with start(sys.argv[1], [0, 1, 2], {**_what, "session": False, "terminal": False}) as _told:
        # It ends by its own exit or with us.
        _lines = _told.read().split()
    sys.exit(int(_lines[1]))
