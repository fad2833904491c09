"""Settings of what leaves this machine, and to which remote, for a list that machines share.

They stand in the clone's git settings: `git config` shows and changes them.
"""

from __future__ import annotations

from typing import NamedTuple

from harness_lib import typed
from harness_lib.errors import ConfigError, UsageError
from harness_lib.system.git.repository import Git

REFS = "refs/harness/"
# For a host that takes branches only.
HEADS = "refs/heads/harness/"
MOST_MEGABYTES = 100
_SECTION = "harness."
_WORK, _TARGET = f"{_SECTION}workRemote", f"{_SECTION}targetRemote"
_SNAPSHOTS, _MOST, _REFS = f"{_SECTION}snapshots", f"{_SECTION}maxSnapshot", f"{_SECTION}refs"


class Leaving(NamedTuple):
    """Names of remotes, "" for the one of the branch, and what goes there.

    `work`: for unfinished work; `target`: for the branch. `snapshots` False: unfinished work stays at home.
    `most`: megabytes of an attempt that are pushed before it is finished. `refs` begins the names of refs.
    """

    work: str = ""
    target: str = ""
    snapshots: bool = True
    most: int = MOST_MEGABYTES
    refs: str = REFS


def read(git: Git) -> Leaving:
    """Return the settings of the clone. Raises ConfigError."""
    said = git.run("config", "--local", "--get-regexp", rf"^{_SECTION}", check=False).stdout
    lines = (line.partition(" ") for line in said.decode("utf-8", "replace").splitlines())
    found = {name: value for name, _, value in lines}
    most = found.get(_MOST.lower(), str(MOST_MEGABYTES))
    if not most.isdecimal():
        raise ConfigError(
            f"{_MOST} must be a number of megabytes, not {most!r}.",
            f"Type: {typed.git('config', _MOST, 100)}",
        )
    return Leaving(
        found.get(_WORK.lower(), ""),
        found.get(_TARGET.lower(), ""),
        found.get(_SNAPSHOTS.lower()) != "false",
        int(most),
        HEADS if found.get(_REFS.lower()) == "branches" else REFS,
    )


def save(git: Git, wanted: Leaving) -> None:
    """Write what differs from the default into the clone's settings. Raises UsageError: no such remote."""
    remotes = git.text("remote").split()
    for name in filter(None, (wanted.work, wanted.target)):
        if name not in remotes:
            there = ", ".join(remotes) or "none"
            raise UsageError(
                f"There is no remote called {name}; there are: {there}.",
                f"Add it first: {typed.git('remote', 'add', name, rest='URL')}",
            )
    values = {
        _WORK: wanted.work,
        _TARGET: wanted.target,
        _SNAPSHOTS: "" if wanted.snapshots else "false",
        _MOST: "" if wanted.most == MOST_MEGABYTES else str(wanted.most),
        _REFS: "branches" if wanted.refs == HEADS else "",
    }
    for name, value in values.items():
        # Without a value there may be nothing to remove.
        git.run("config", "--local", *((name, value) if value else ("--unset-all", name)), check=False)
