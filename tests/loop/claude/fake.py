"""Stands for Claude Code: plays the lines of `play.json` beside itself, and writes down what it is told.

A play is a list of runs, each a list of acts: an event to print, {"raw": text}, {"asks": request} (waits for
the answer), {"starts": command}, {"hangs": true}, {"stderr": text}, {"exits": code}.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def say(value: object) -> None:
    sys.stdout.write(f"{value if isinstance(value, str) else json.dumps(value)}\n")
    sys.stdout.flush()


def note(value: object) -> None:
    with (HERE / "heard.jsonl").open("a") as file:
        file.write(json.dumps(value) + "\n")


play = json.loads((HERE / "play.json").read_text())
count = HERE / "count"
run = int(count.read_text()) if count.exists() else 0
count.write_text(str(run + 1))
note({"argv": sys.argv[1:], "env": dict(os.environ), "cwd": str(Path.cwd()), "group": os.getpgid(0)})
note({"said": json.loads(sys.stdin.readline())})
for act in play[min(run, len(play) - 1)]:
    if "raw" in act:
        say(act["raw"])
    elif "asks" in act:
        say({"type": "control_request", "request_id": "r1", "request": act["asks"]})
        note({"answered": json.loads(sys.stdin.readline())})
    elif "starts" in act:
        subprocess.Popen(act["starts"])
    elif "stderr" in act:
        sys.stderr.write(act["stderr"])
    elif "hangs" in act:
        time.sleep(600)
    elif "exits" in act:
        sys.exit(act["exits"])
    else:
        say(act)
