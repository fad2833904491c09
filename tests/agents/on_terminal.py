"""A process with the name of an agent, or of a terminal, that types commands on a pseudo-terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

# What a command shows is copied to standard output by `pty` itself; the answers come on standard error.
PROGRAM = """
import json, os, pty, sys
answers = []
for argv in json.load(sys.stdin):
    said = []
    def read(fd):
        said.append(os.read(fd, 4096))
        return said[-1]
    code = os.waitstatus_to_exitcode(pty.spawn(argv, read))
    answers.append([code, b"".join(said).decode("utf-8", "replace")])
json.dump(answers, sys.stderr)
"""


def types(name: str, place: Path, cwd: Path, *commands: tuple[str, ...], **env: str) -> list[tuple[int, str]]:
    """Let a process called `name` type `harness COMMAND` for each; return exit codes and what was shown."""
    program = place / name
    if not program.exists():
        program.symlink_to(os.path.realpath(sys.executable))
    typed = [[sys.executable, "-m", "harness_lib", *words] for words in commands]
    done = subprocess.run(
        [program, "-I", "-S", "-c", PROGRAM],
        input=json.dumps(typed),
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=True,
    )
    return [(code, said) for code, said in json.loads(done.stderr)]
