"""The agent of these tests: it does what the `do:` line of its brief says, one step after another.

Steps, separated by ` ;; `:
    write FILE TEXT      append TEXT as a line; conflict marks that stand there are resolved: both sides stay
    say TEXT             print a line
    once STEP            do STEP only if this task was never worked on before
    first STEP / then STEP   in the first attempt (no failure in the brief) / in later ones
    wait FILE            until FILE, outside the work tree, is there
    touch FILE           make FILE, outside or inside the work tree
    sleep SECONDS        be silent
    kill                 die by SIGKILL
    exit N               end with N
    sh COMMAND           run a shell command here
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

BRIEF = sys.stdin.read()
MARKS = ("<<<<<<<", "=======", ">>>>>>>")


def main() -> None:
    line = next((line for line in BRIEF.splitlines() if "do: " in line), "")
    for step in filter(None, line.partition("do: ")[2].split(" ;; ")):
        do(step.strip())
    say("worked on " + os.environ["HARNESS_TASK_ID"])


def do(step: str) -> None:
    verb, _, rest = step.partition(" ")
    STEPS[verb](rest)


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def write(rest: str) -> None:
    name, _, text = rest.partition(" ")
    file = Path(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = file.read_text().splitlines() if file.exists() else []
    lines = [line for line in lines if not line.startswith(MARKS)]
    if text not in lines:
        lines.append(text)
    # In one step: an agent that is killed in the middle must not leave half a file of other tasks' lines.
    whole = Path(os.environ.get("AGENT_MEMORY") or os.environ["HOME"], f"harness-agent-{os.getpid()}")
    whole.write_text("\n".join(lines) + "\n")
    whole.replace(file)


def once(step: str) -> None:
    memory = Path(os.environ["AGENT_MEMORY"], os.environ["HARNESS_TASK_ID"])
    if not memory.exists():
        memory.touch()
        do(step)


def first(step: str) -> None:
    if "last failure:" not in BRIEF:
        do(step)


def then(step: str) -> None:
    if "last failure:" in BRIEF:
        do(step)


def wait(name: str) -> None:
    while not Path(name).exists():
        time.sleep(0.02)


STEPS: dict[str, Callable[[str], object]] = {
    "write": write,
    "say": say,
    "once": once,
    "first": first,
    "then": then,
    "wait": wait,
    "touch": lambda name: Path(name).touch(),
    "sleep": lambda seconds: time.sleep(float(seconds)),
    "kill": lambda _: os.kill(os.getpid(), signal.SIGKILL),
    "exit": lambda code: sys.exit(int(code)),
    "sh": lambda command: subprocess.call(command, shell=True),
}

if __name__ == "__main__":
    main()
