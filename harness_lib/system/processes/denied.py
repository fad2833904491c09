"""Find in the output of a command which accesses its sandbox has denied."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from harness_lib import typed
from harness_lib.system.place import data_home
from harness_lib.system.processes import environment, sandbox, sandbox_places
from harness_lib.system.processes.engines import is_within

# The most accesses that are named at once.
MOST = 5
_REFUSED = (
    r"(?i)permission denied|read-only file ?system|\bEACCES\b|\bEROFS\b|operation not permitted|resource busy"
)
_MISSING = r"(?i)no such file or directory|\bENOENT\b|cannot connect to|connection refused"
# In quotation marks a path may have spaces.
_PATH = r"""["'`\u2018]((?:/|~/)[^"'`\u2019\n]+)["'`\u2019]|(?<![\w./-])(/[\w.@+~%/-]+|~/[\w.@+~%/-]+)"""
# A shell quotes no path: behind a blank it goes on as far as there is a directory.
_BEHIND_BLANK = r" [^:\n]*/[^\s:/]*"
# A shell names the script and its line before the path that was refused.
_SCRIPT = r"^[^:]+: (?:line )?\d+: "
# Such a line follows one with the path.
_BARE = r"(?i)^\s*(?:read-only|permission denied)|errno"
_LINES_BEFORE = 3
_SAID, _CURE = "The sandbox denied: ", ". Allow it: "


class Denied(NamedTuple):
    """One access: `how` is read or write, `path` is absolute."""

    how: str
    path: str

    def __str__(self) -> str:
        home = str(Path.home())
        inside = is_within(self.path, home)
        return f"{self.how} {'~' + self.path[len(home) :] if inside else self.path}"


def said(text: str, env: environment.Env, cwd: Path, *, by_agent: bool = False) -> str:
    """Return what the sandbox has denied, and the options that allow it; "" if `text` names nothing.

    `text` is what a command with `env` in `cwd` has printed. If that was `by_agent`, the user's checkout is
    left out: its work belongs into its own work tree.
    """
    found = accesses(text, env, cwd)
    box = sandbox.of(env) if by_agent and found else None
    if box and box.checkout:
        found = [each for each in found if not is_within(os.path.realpath(each.path), box.checkout[0])]
    if not found:
        return ""
    return f"{_SAID}{', '.join(map(str, found))}{_CURE}{_allowing([each.path for each in found])}"


def parts(text: str) -> tuple[str, str] | None:
    """Return the sentence and the command in what `said` has returned; None for another text.

    An agent chooses the paths, and one may read as another command.
    """
    for cure in re.finditer(re.escape(_CURE), text):
        sentence, command = text[: cure.start()], text[cure.end() :]
        with suppress(ValueError):
            if sentence.startswith(_SAID) and command == _allowing(shlex.split(command)[3::2]):
                return sentence, command
    return None


def told(text: str) -> tuple[str, str] | None:
    """Return the sentence and the command of `said` in a longer text, such as a halt; None without them."""
    at = text.find(_SAID)
    return parts(text[at:].removesuffix(".")) if at >= 0 else None


def is_allowed(command: str, env: environment.Env) -> bool:
    """Return whether a run with `env` allows already what `command`, which `said` has named, would allow."""
    box = sandbox.of(env)
    paths = shlex.split(command)[3::2]
    return not box or all(is_within(os.path.realpath(path), *box.writable) for path in paths)


def _allowing(paths: Sequence[str]) -> str:
    return typed.harness("run", *(word for path in paths for word in ("--allow-write", path)))


def accesses(text: str, env: environment.Env, cwd: Path) -> list[Denied]:
    """Return the accesses that the sandbox of `env` has denied, as far as `text` names them.

    An access that the user may not make either is not among them.
    """
    place = sandbox.placed(env, cwd)
    return found(text, place[0], str(place[1]), env) if place else []


def found(text: str, box: sandbox.Sandbox, tree: str, env: environment.Env) -> list[Denied]:
    """Return the accesses that `box` has denied a command with `env` which may write `tree`."""
    judged = (_judged(path, box, tree, is_refused=refused) for path, refused in _named(text, env))
    # Nobody is to allow an agent what is harness's own: records, work trees of others, held-out checks.
    own = os.path.realpath(data_home.directory(env))
    named = dict.fromkeys(each for each in judged if each and not is_within(os.path.realpath(each.path), own))
    return list(named)[:MOST]


def _named(text: str, env: environment.Env) -> Iterator[tuple[str, bool]]:
    """Yield the absolute paths beside errors, each with whether the error says that it was refused."""
    home = env.get("HOME") or str(Path.home())
    # Agents print JSON.
    lines = text.replace("\\n", "\n").replace('\\"', '"').splitlines()
    for number, line in enumerate(lines):
        refused = re.search(_REFUSED, line) is not None
        if not refused and not re.search(_MISSING, line):
            continue
        before = _LINES_BEFORE if re.search(_BARE, line) else 0
        near = [re.sub(_SCRIPT, "", each) for each in lines[max(0, number - before) : number + 1]]
        for named in next(filter(None, (list(_paths(each)) for each in reversed(near))), []):
            path = named.rstrip(".:,")
            yield os.path.normpath(home + path[1:] if path.startswith("~") else path), refused


def _paths(line: str) -> Iterator[str]:
    for match in re.finditer(_PATH, line):
        more = match[2] and re.compile(_BEHIND_BLANK).match(line, match.end())
        if more and os.path.isdir(os.path.dirname(match[2] + more[0])):  # noqa: PTH112, PTH120
            yield match[2] + more[0]
            return
        yield match[1] or match[2]


def _judged(path: str, box: sandbox.Sandbox, tree: str, *, is_refused: bool) -> Denied | None:
    """Return the access if the sandbox is why it failed."""
    real = os.path.realpath(path)
    if box.checkout and re.fullmatch(
        sandbox_places.SHOWN, os.path.relpath(real, box.checkout[0]).partition("/")[0]
    ):
        # A word of an agent that harness could not write to its list is left for the run.
        return None
    if is_within(real, *map(os.path.realpath, box.protected)):
        return Denied("write", path) if is_refused else None
    if is_within(real, tree, *box.writable):
        return None
    for secret in (*box.secret, *sandbox_places.SOCKETS):
        if is_within(real, os.path.realpath(secret)) and os.path.lexists(real):
            return Denied("read", path)
    if not is_refused or real.startswith(("/proc/", "/sys/", "/dev/")):
        return None
    there = next(each for each in (Path(real), *Path(real).parents) if os.path.lexists(each))
    # What the user may not write or make either, the sandbox has not denied.
    return Denied("write", path) if os.access(there, os.W_OK) else None
