"""Read the files of a repository that an agent may change, as data: git would read its settings, too."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import NamedTuple

from harness_lib.system import fs, nofollow
from harness_lib.system.git.repository import Git

_LIMIT = 4096
_OID = r"[0-9a-f]{40}(?:[0-9a-f]{24})?"
_REF = r"refs/[^\s~^:?*\[\\]+"


class Seen(NamedTuple):
    """The state of a clone: its commits, and when its index and its packed refs were written."""

    head: str | None = None
    merging: tuple[str, ...] = ()
    indexed: int | None = None
    packed: int | None = None


def present(clone: Path) -> Seen:
    """Return the state of the clone as it is now."""
    merging = tuple(oid for oid in content(clone / "MERGE_HEAD").split() if re.fullmatch(_OID, oid))
    return Seen(head_of(clone), merging, _written(clone / "index"), _written(clone / "packed-refs"))


def note(git: Git, state: Seen) -> None:
    """Note the known state of the clone, beside the work tree: nothing is taken in twice."""
    fs.write(_note(git), json.dumps(state).encode(), durable=False)


def noted(git: Git) -> Seen:
    """Return the state of the clone that was noted last; an empty one if none was."""
    try:
        head, merging, indexed, packed = json.loads(_note(git).read_bytes())
    except (OSError, ValueError):
        return Seen()
    return Seen(head, tuple(merging), indexed, packed)


def head_of(clone: Path) -> str | None:
    """Return the commit of HEAD of the clone; None if its files do not tell."""
    text = content(clone / "HEAD").rstrip()
    name = text.removeprefix("ref: ")
    if name != text:
        is_branch = name.startswith("refs/heads/") and ".." not in name.split("/")
        text = (content(clone / name) or _packed(clone).get(name, "")).rstrip() if is_branch else ""
    return text if re.fullmatch(_OID, text) else None


def refs(clone: Path) -> dict[str, str]:
    """Return name → object of the refs of the clone that git would accept."""
    found = _packed(clone) | _loose(clone)
    return {
        name: oid
        for name, oid in found.items()
        if re.fullmatch(_OID, oid) and re.fullmatch(_REF, name) and ".." not in name
    }


def changed_refs(clone: Path, *, packed: bool) -> dict[str, str]:
    """Return name → object of the loose refs, the stashes and, if `packed` has changed, of all others."""
    found = _packed(clone) if packed else {}
    found |= _loose(clone)
    for number, line in enumerate(reversed(content(clone / "logs" / "refs" / "stash", -1).splitlines())):
        found[f"refs/stash-{number}"] = line.split(" ")[1] if " " in line else ""
    names = {oid: name for name, oid in reversed(found.items()) if re.fullmatch(_OID, oid)}
    return {name: oid for oid, name in names.items()}


def content(path: Path, limit: int = _LIMIT) -> str:
    """Return the text of the file at `path`, at most `limit` bytes of it; "" if it cannot be read."""
    try:
        return os.fsdecode(nofollow.read(path, limit))
    except OSError:
        return ""


def _packed(clone: Path) -> dict[str, str]:
    lines = (line.partition(" ") for line in content(clone / "packed-refs", -1).splitlines())
    return {name: oid for oid, _, name in lines}


def _loose(clone: Path) -> dict[str, str]:
    paths = fs.below(clone / "refs", "*")
    return {str(path.relative_to(clone)): content(path).strip() for path in paths}


def _written(path: Path) -> int | None:
    """Return when a file was written; None if there is none."""
    try:
        info = path.lstat()
    except OSError:
        return None
    return info.st_mtime_ns if stat.S_ISREG(info.st_mode) else None


def _note(git: Git) -> Path:
    return git.top.with_name(f"{git.top.name}.seen")
