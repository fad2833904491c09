"""Commands as a reader finds them in what harness says, and a shell in which to type them."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from harness_lib.cli import parser

# Each begins a file named PWNED where a shell takes it for more than a word.
NAMES = (
    "$(touch${IFS}PWNED)",
    "`touch${IFS}PWNED`",
    "a;touch${IFS}PWNED",
    "a|touch${IFS}PWNED",
    "a&touch${IFS}PWNED",
    "a>PWNED",
    "a'$(touch${IFS}PWNED)'b",
    'a"$(touch${IFS}PWNED)"b',
)
PROGRAMS = ("harness", "git")


@lru_cache
def _verbs() -> frozenset[str]:
    listed = subprocess.run(["git", "--list-cmds=main"], capture_output=True, text=True, check=True)
    return frozenset(("-C", *parser.known(), *listed.stdout.split()))


def commands(text: str) -> Iterator[str]:
    """Yield what a reader of `text` would type: from `harness VERB` or `git VERB` to where its words end."""
    for match in re.finditer(rf"(?<![\w.-])(?:\S*/)?({'|'.join(PROGRAMS)}) (\S+)", text):
        if match[2].rstrip(".,;:)") in _verbs():
            yield _words(text[match.start() :].split("\n", 1)[0])


def _words(line: str) -> str:
    """Return the beginning of `line` that is a command: to a word that ends with a mark of the sentence."""
    end, quote = 0, ""
    for at, letter in enumerate(line):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter != " " and not line[at:].split(" ", 1)[0].strip(".,;:)"):
            return line[:at]
        end = at + 1
    return line[:end]


class Shell:
    """A `sh` whose harness and git write down how they were called, and do nothing."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._heard = place / "heard"
        programs = place / "bin"
        programs.mkdir(parents=True)
        for name in PROGRAMS:
            stub = programs / name
            stub.write_text(f'#!/bin/sh\nprintf "%s\\0" "$@" > {shlex.quote(str(self._heard))}\n')
            stub.chmod(0o755)
        self._env = {"PATH": f"{programs}:{os.environ['PATH']}"}

    def type(self, command: str) -> list[str]:
        """Return the words that the program got; fails where anything else was run, or nothing."""
        self._heard.unlink(missing_ok=True)
        (self.place / "here").mkdir(exist_ok=True)
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=self.place / "here",
            env=self._env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), (command, done)
        assert not list((self.place / "here").iterdir()), f"typing this ran a command: {command}"
        return self._heard.read_bytes().decode().split("\0")[:-1]


def texts(value: object) -> Iterator[str]:
    """Yield every text of a JSON document that is shown to somebody; `task` is the list's own data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in ("task", "tasks", "id", "title"):
                yield from texts(item)


def spoken(out: str) -> list[str]:
    """Return the texts of what a program printed: of a JSON document its texts, else all."""
    try:
        return list(texts(json.loads(out)))
    except ValueError:
        return [out]
