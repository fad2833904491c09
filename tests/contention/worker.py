"""One worker of a crowd, a process of its own: claims and finishes until nothing is left that it may take.

`python worker.py [--most=N]`: in its work tree, with HARNESS_WORKER_ID set. It says `ready`, waits for a line
on standard input, works, and says how it went: {"finished": how many tasks, "errors": what went wrong,
"waited": seconds of its longest command}.
`--most=N`: it ends after N tasks, and what is held by others for too long (exit 5) it types again.
"""

from __future__ import annotations

import json
import os
import sys
import time
from argparse import ArgumentParser
from pathlib import Path
from types import ModuleType
from typing import cast

from harness_lib.core.context import Context, Reply
from harness_lib.errors import HarnessError, HeldError
from harness_lib.state import schema
from harness_lib.verbs import claim, finish


class Worker:
    """Works as an agent does, with a new `Context` for each command: nothing but files lies between two."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self.finished = 0
        self.longest = 0.0
        self.errors: list[str] = []

    def work(self) -> None:
        while self.finished != self._most:
            reply = self._type(claim)
            if reply is None or reply.stop is not None:
                return
            if self._type(finish) is None:
                return
            self.finished += 1

    def _type(self, verb: ModuleType) -> Reply | None:
        parser = ArgumentParser()
        verb.arguments(parser)
        args = parser.parse_args([])
        while True:
            began = time.monotonic()
            try:
                ctx = Context(env=dict(os.environ), cwd=Path.cwd())
                return cast("Reply", verb.answer(ctx, args))
            except HarnessError as error:
                if self._most is None or not isinstance(error, HeldError):
                    self.errors.append(f"{error.kind}: {error.message}")
                    return None
            finally:
                self.longest = max(self.longest, time.monotonic() - began)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    schema.problems({"tasks": []})  # the dear import, before the race begins
    worker = Worker(int(sys.argv[1].removeprefix("--most=")) if sys.argv[1:] else None)
    say("ready")
    sys.stdin.readline()
    worker.work()
    say(json.dumps({"finished": worker.finished, "errors": worker.errors, "waited": worker.longest}))


if __name__ == "__main__":
    main()
