"""Read what a shell command line will start, without starting it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from harness_lib import sha256

_OPERATORS = frozenset("();<>|&")
_EXPANSIONS = frozenset("$`\n")
_UNCERTAIN = frozenset("~*?[]{}!#")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_KEYWORDS = "if then else elif fi for in do done while until case esac function select time { } ! [["
_BUILTINS = """
    . : [ alias bg break builtin cd command continue declare echo eval exec exit export false fc fg getopts
    hash jobs kill let local popd printf pushd pwd read readonly return set shift shopt source test times trap
    true type typeset ulimit umask unalias unset wait
"""
LARGEST_READ = 1_000_000
_SHELL_WORDS = frozenset(f"{_KEYWORDS} {_BUILTINS}".split())


def first_word(command: str) -> str | None:
    """Return the program that the simple command `command` starts, after leading `NAME=value`.

    None if that cannot be told by reading: operators, substitutions, quotes that do not close, a keyword or
    builtin of the shell, a pattern, or an assignment to PATH.
    """
    text = command.strip()
    if _EXPANSIONS & set(text):
        return None
    words = _words(text)
    if words is None or any(word and set(word) <= _OPERATORS for word in words):
        return None
    return _program(words)


def missing_command(command: str, *, cwd: Path, env: Mapping[str, str]) -> str | None:
    """Return the first word of `command` if no such program exists for a shell in `cwd`, else None."""
    word = first_word(command)
    if word is None:
        return None
    if "/" in word:
        return None if (cwd / word).exists() else word
    return None if _find(word, cwd, env) else word


def identity(word: str, *, cwd: Path, env: Mapping[str, str]) -> str:
    """Return the file that a shell in `cwd` starts for `word`, `#` and what tells its content from another's.

    "" if there is none: then it is one of the shell's own words, or not installed.
    """
    found = None if word in _SHELL_WORDS else _find(word, cwd, env)
    if found is None:
        return ""
    place = Path(os.path.realpath(found))
    try:
        size = place.stat().st_size
        # Large programs are not read at each claim; what takes their place is hardly of the same size.
        content = sha256.digest(place.read_bytes()) if size <= LARGEST_READ else ""
    except OSError:
        return str(place)
    return f"{place}#{content[:16] or size}"


def _find(word: str, cwd: Path, env: Mapping[str, str]) -> str | None:
    # An empty or relative entry of PATH counts from where the command runs, not from where we do.
    entries = (str(cwd / entry) for entry in env.get("PATH", os.defpath).split(os.pathsep))
    return shutil.which(word, path=os.pathsep.join(entries))


def _words(text: str) -> list[str] | None:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:
        return None


def _program(words: list[str]) -> str | None:
    for word in words:
        assigned = _ASSIGNMENT.match(word)
        if assigned is None:
            return None if not word or word in _SHELL_WORDS or _UNCERTAIN & set(word) else word
        if assigned[1] == "PATH":
            return None
    return None
