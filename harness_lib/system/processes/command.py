"""Read what a shell command line will start, without starting it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

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
    # An empty or relative entry of PATH counts from where the command runs, not from where we do.
    entries = (str(cwd / entry) for entry in env.get("PATH", os.defpath).split(os.pathsep))
    return None if shutil.which(word, path=os.pathsep.join(entries)) else word


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
