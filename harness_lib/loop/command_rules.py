"""A rule about commands and one command: whether the rule matches it, and which files the command names.

Nothing here knows where a rule comes from, or where the command would run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache

from harness_lib.loop import shell_words
from harness_lib.loop.shell_words import HIDDEN, Simple
from harness_lib.text import words_of

# Programs that write the files that they name, always or with an option.
_WRITE = words_of("""
    chattr chmod chown cp dd ed ex gunzip gzip install ln mkdir mv nano nvim patch rm rmdir rsync setfacl
    shred sponge tee touch truncate unlink vi vim
""")
_EDIT_IN_PLACE = frozenset(("gsed", "perl", "ruby", "sed"))
_IN_PLACE = r"--in-place|-[A-Za-z]*i"
# The option before the file that a program writes.
_OUTPUT = {
    "curl": r"--output|-[A-Za-z]*?o",
    "git": r"--output|-o",
    "sort": r"--output|-[a-z]*?o",
    "wget": r"--output-document|-[A-Za-z]*?O",
}
_GIT_WRITES = frozenset(("checkout", "mv", "restore", "rm"))


@lru_cache(maxsize=8)
def files_in(command: str) -> list[tuple[str, bool]]:
    """Return each word in `command` that may be a file, once, and whether the command writes it.

    Each rule asks, and of the words behind `xargs` each may begin a command with those that follow.
    """
    return list(dict.fromkeys(_files_in(command)))


def _files_in(command: str) -> Iterator[tuple[str, bool]]:
    places = [""]
    for simple in shell_words.every(command):
        in_place = simple.program in _EDIT_IN_PLACE and any(
            re.match(_IN_PLACE, word) for word in simple.words
        )
        by_git = simple.program == "git" and not _GIT_WRITES.isdisjoint(simple.words)
        writes = in_place or by_git or simple.program in _WRITE
        named = [(word, True) for word in simple.targets]
        named += [(word, False) for word in simple.sources]
        option = _OUTPUT.get(simple.program, HIDDEN)
        for before, word in zip(["", *simple.words], simple.words, strict=False):
            named.append((word, writes or re.fullmatch(option, before) is not None))
            # Also written onto it.
            if attached := re.fullmatch(f"(?s)(?:{option})=?(.+)", word):
                named.append((attached[1], True))
        for word, is_written in named:
            # Also behind these: `@FILE` of curl, `HEAD:FILE` of git.
            for part in {*shell_words.values(word), re.split("[:@]", word)[-1]}:
                # Seen from each directory that the command goes to.
                yield from ((os.path.join(place, part), is_written) for place in places)  # noqa: PTH118
        if simple.program in {"cd", "pushd"} and len(simple.words) > 1:
            places.append(os.path.join(places[-1], simple.words[1]))  # noqa: PTH118


def names(what: str, command: Simple) -> bool | None:
    """Return whether an ask or deny rule matches the command; None if that is unknown."""
    words, rest = _parsed(what)
    if not command.words or not words:
        return False
    if HIDDEN in command.program:
        return None
    if "*" in "".join(words):
        shown = [" ".join([program, *command.words[1:]]) for program in (command.words[0], command.program)]
        joined = [*shown, *(" ".join(map(_plain_path, text.split(" "))) for text in shown)]
        found = any(_glob(_pattern(what), text) for text in joined)
        return True if found else None if HIDDEN in " ".join(command.words) else False
    if not (command.program == words[0].casefold() or _plain_path(command.words[0]) == _plain_path(words[0])):
        return False
    follows = _follow(words[1:], command.words[1:])
    if follows and not rest and len(words) > 1:
        return list(map(_plain_path, command.words[1:])) == list(map(_plain_path, words[1:]))
    return follows


def _follow(wanted: list[str], given: list[str]) -> bool | None:
    """Return whether `given` begins with `wanted`, options and their values aside; None if that is hidden."""
    left, before = list(wanted), ""
    for word in given:
        if not left:
            break
        if HIDDEN in word or any(c in word for c in "*?["):
            return None
        if _plain_path(word) == _plain_path(left[0]):
            left.pop(0)
        elif not (word.startswith("-") or before.startswith("-")):
            return False
        before = word
    return not left


def _plain_path(word: str) -> str:
    return os.path.normpath(word) if "/" in word else word


def covers(what: str, command: Simple) -> bool:
    """Return whether an allow rule matches the command, word for word."""
    words, rest = _parsed(what)
    if not words or not command.words:
        return False
    if "*" in "".join(words):
        steps_up = any(".." in word.split("/") for word in command.words)
        return not steps_up and _glob(_pattern(what), " ".join(command.words))
    return command.words[: len(words)] == words and (rest or len(command.words) == len(words))


def _parsed(what: str) -> tuple[list[str], bool]:
    """Return the words of a rule, and whether others may follow them."""
    text = what.removesuffix(":*") if what.endswith(":*") else what.removesuffix(" *")
    commands = shell_words.written(text)
    return (commands[0].words if len(commands) == 1 else [text]), text != what


def _glob(pattern: str, text: str) -> bool:
    parts = map(re.escape, pattern.split("*"))
    return re.fullmatch(".*".join(parts), text, re.DOTALL) is not None


def _pattern(what: str) -> str:
    return f"{what[:-2]} *" if what.endswith(":*") else what
