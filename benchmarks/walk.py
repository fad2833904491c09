"""Count the functions of ours that a command passes, and the files that they are in.

usage: python benchmarks/walk.py [--names] [hs|start|finish|stop]...

Each command runs in a process of its own, under `sys.setprofile`. A function counts once, however often it is
called; modules, classes, lambdas and comprehensions do not count.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
# The most functions and files that each may pass.
BARS = {"hs": (220, 55), "start": (250, 60), "finish": (300, 65), "stop": (80, 15)}
# Runs the program argv[2:] and writes into the file argv[1] which functions it has called.
PROFILED = """
import atexit, json, os, runpy, sys, threading
report, checkout, sys.argv = sys.argv[1], sys.argv[2], sys.argv[3:]
called = set()
def note(frame, event, argument):
    code = frame.f_code
    is_function = code.co_flags & 1 and code.co_name[0] != "<"
    if event == "call" and is_function and code.co_filename.startswith(checkout):
        called.add((code.co_filename, code.co_name, code.co_firstlineno))
def write():
    sys.setprofile(None)
    with open(report, "w") as stream:
        json.dump(sorted(called), stream)
def leave(code, leave=os._exit):
    write()
    leave(code)
os._exit = leave
atexit.register(write)
threading.setprofile(note)
sys.setprofile(note)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def walk(program: Sequence[str], cwd: Path, stdin: bytes = b"") -> list[tuple[str, str, int]]:
    """Run `program`, a script of ours with its arguments; return file, name and line of each function."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory, "called.json")
        code = ["-c", PROFILED, str(report), str(CHECKOUT) + os.sep]
        done = subprocess.run(
            [sys.executable, "-I", "-S", *code, *program],
            cwd=cwd,
            input=stdin,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            sys.exit(done.stderr.decode())
        return [tuple(each) for each in json.loads(report.read_bytes())]


def hs(place: Path) -> list[tuple[str, str, int]]:
    """Walk through a turn of `hs` with one call of a tool."""
    from benchmarks.turns import CALL, environment, served  # noqa: PLC0415 (after `settle_in`)
    from tests.loop.servers.script import say  # noqa: PLC0415

    place.mkdir()
    with served() as server:
        server.begin(CALL, say("Done."))
        os.environ.update(environment(server))
        return walk([str(CHECKOUT / "bin" / "hs"), "RUN it"], place)


@contextmanager
def _project(place: Path) -> Iterator[Path]:
    from benchmarks.projects import Project  # noqa: PLC0415

    with closing(Project.make(place, 10)) as project:
        yield project.path


def start(place: Path) -> list[tuple[str, str, int]]:
    """Walk through `harness start`."""
    with _project(place) as project:
        return walk([str(CHECKOUT / "bin" / "harness"), "start"], project)


def finish(place: Path) -> list[tuple[str, str, int]]:
    """Walk through `harness finish` of a task that was claimed."""
    with _project(place) as project:
        walk([str(CHECKOUT / "bin" / "harness"), "claim"], project)
        return walk([str(CHECKOUT / "bin" / "harness"), "finish", "task-001"], project)


def stop(place: Path) -> list[tuple[str, str, int]]:
    """Walk through a Stop hook that holds its session."""
    from benchmarks.projects import AGENT  # noqa: PLC0415

    with _project(place) as project:
        payload = {
            "session_id": AGENT,
            "cwd": str(project),
            "hook_event_name": "Stop",
            "permission_mode": "default",
        }
        return walk([str(CHECKOUT / "hooks" / "harness-stop.py")], project, json.dumps(payload).encode())


WALKS = {"hs": hs, "start": start, "finish": finish, "stop": stop}


def main(args: list[str]) -> None:
    """Print a line for each walk that was asked for, or for all of them."""
    from benchmarks.projects import settle_in  # noqa: PLC0415 (imports all of harness)

    with tempfile.TemporaryDirectory() as directory:
        settle_in(Path(directory, "home"))
        for name in [arg for arg in args if arg in WALKS] or WALKS:
            called = WALKS[name](Path(directory, name))
            files = {file for file, _, _ in called}
            functions, most = BARS[name]
            print(f"{name:<7} {len(called)} functions (≤ {functions}) in {len(files)} files (≤ {most})")
            if "--names" in args:
                for file, function, line in called:
                    print(f"  {Path(file).relative_to(CHECKOUT)}:{line} {function}")


if __name__ == "__main__":
    sys.path.insert(0, str(CHECKOUT))
    main(sys.argv[1:])
