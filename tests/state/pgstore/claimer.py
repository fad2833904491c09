"""One machine of many, a process of its own: claim, finish, and take over what a dead one has left.

`python claimer.py DIRECTORY NAME`: the directory has a link to the list. Each claim is a line
`claimed TASK FENCE` in the file `NAME`, each outcome `done TASK FENCE` or, where another machine has the task
now, `late TASK FENCE`.
"""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from pathlib import Path

from harness_lib.rules import transitions
from harness_lib.state.pgstore.store import opened
from harness_lib.system.clock import SYSTEM
from harness_lib.system.place.roots import Root
from harness_lib.task import Task

LEASE_SECONDS = 1


def main(directory: Path, name: str) -> None:
    store = opened(Root(directory), SYSTEM)

    def note(what: str, task: Task) -> None:
        with (directory / name).open("a") as file:
            file.write(f"{what} {task.id} {task.fence}\n")

    def claimed() -> Task | None:
        with store.transaction() as tx:
            held = tx.expired()
            task = held[0] if held else tx.next_ready()
            if task is None:
                return None
            claim = transitions.resume if held else partial(transitions.claim, base=None, gate=None)
            task = claim(task, worker=name, now=tx.now, worktree=None, lease_seconds=LEASE_SECONDS)
            tx.replace(task)
            tx.log("Starting", f"{task.fence} by {name}", 0, task.id)
        return task

    def finished(task: Task) -> bool:
        with store.transaction() as tx:
            current = tx.task(task.id)
            assert current is not None
            if current.fence != task.fence:
                return False
            current = transitions.begin_commit(current, now=tx.now, head=None, commit="a" * 40)
            tx.replace(transitions.complete(current, now=tx.now))
            tx.log("Completed", f"{task.fence} by {name}", 0, task.id)
        return True

    while True:
        task = claimed()
        if task is not None:
            note("claimed", task)
            note("done" if finished(task) else "late", task)
        elif store.ask().work_remains():
            time.sleep(0.05)
        else:
            return


if __name__ == "__main__":
    os.environ["HARNESS_WORKER_ID"] = sys.argv[2]
    main(Path(sys.argv[1]), sys.argv[2])
