"""Start a worker in a process of its own, with two pipes to the run.

It speaks in JSON lines on standard output (`rules.events` says which), and hears the run on standard input:
its configuration first, then what `Worker.hear` takes; the end of the input means that the run is dead.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

from harness_lib.core.context import Context
from harness_lib.errors import EnvSetupError, HarnessError
from harness_lib.rules import events
from harness_lib.rules.events import Event, Idle, Notice, Started, Stuck
from harness_lib.runs import options
from harness_lib.runs.merger import Merger
from harness_lib.runs.worker import Worker
from harness_lib.system import os_errors
from harness_lib.system.processes import reaper, signals


def main() -> None:
    """Work by the WorkerConfig in the first line of standard input; do nothing if there is none."""
    line = sys.stdin.readline()
    if not line:
        return
    config = options.read(line)
    env = {**os.environ, **config.env()}
    out = sys.stdout

    def say(event: Event) -> None:
        out.write(json.dumps(events.write(event)) + "\n")
        out.flush()

    def tell(text: str) -> None:
        worker.tell(Notice("warning", text))

    root = Path(os.environ["HARNESS_STATE_ROOT"])
    ctx = Context(
        env=env, cwd=root, target=config.target, merging=config.merging, protect=config.protect, say=tell
    )
    worker = (Worker if config.number else Merger)(ctx, config, say)
    worker.tell(Started())
    note = Path(config.place) / f"worker-{config.number}.log"
    reaper.note(note, os.getpid())
    signals.raise_once(signals.END, lambda _number: KeyboardInterrupt())
    threading.Thread(target=_listen, args=(worker,), daemon=True).start()
    try:
        worker.work()
    except HarnessError as error:
        worker.tell(Stuck(None, error.kind, error.message, error.hint or ""))
    except OSError as error:
        hint = f"{os_errors.cure(error)}; then: harness run"
        worker.tell(Stuck(None, EnvSetupError.kind, os_errors.describe(error), hint))
    except KeyboardInterrupt:
        worker.tell(Idle("stopped"))
    finally:
        signals.ignore(signals.END)
        reaper.forget(note)


def _listen(worker: Worker) -> None:
    for line in sys.stdin:
        worker.hear(json.loads(line))
    # The run is dead, or has ended us.
    worker.hear({"drain": True})
    signals.send(os.getpid(), signals.END)
