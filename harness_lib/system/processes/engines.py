"""Build the command lines that confine a command: bubblewrap, and nono-py (Landlock, Seatbelt on macOS)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NamedTuple, get_args

Engine = Literal["bubblewrap", "nono"]
ENGINES: tuple[Engine, ...] = get_args(Engine)
TITLES: Mapping[Engine, str] = {"bubblewrap": "bubblewrap", "nono": "Landlock (nono)"}
# Directories of temporary files: under bubblewrap each command has its own.
PRIVATE = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 (nothing is made there)
DEVICES = (
    *("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx"),
    *("/dev/pts", "/dev/shm"),  # noqa: S108
)
# A file that is to be granted may be removed meanwhile.
TRIES = 5


class Grants(NamedTuple):
    """What a command may do: absolute paths that exist.

    It reads everything but `secret`; `shown` and `writable` count where they are the same or deeper.
    `home` is the user's home directory.
    """

    temporary: str
    writable: tuple[str, ...]
    secret: tuple[str, ...]
    shown: tuple[str, ...]
    home: str


def temporary(engine: Engine, directory: str) -> str:
    """Return the path that the command has for its temporary `directory`."""
    return PRIVATE[0] if engine == "bubblewrap" else directory


def command(engine: Engine, text: str, grants: Grants, env: Mapping[str, str], *, closed: bool) -> list[str]:
    """Return the arguments that run `sh -c text` with `grants`; `closed`: without a network.

    bubblewrap keeps a loopback interface of its own then.
    """
    if engine == "bubblewrap":
        return _bubblewrap(text, grants, closed=closed)
    return _nono(text, grants, env, closed=closed)


def _bubblewrap(text: str, grants: Grants, *, closed: bool) -> list[str]:
    # Links are followed: what they lead to is hidden, or written.
    mounts = dict.fromkeys(map(os.path.realpath, grants.shown), "shown")
    mounts |= dict.fromkeys(map(os.path.realpath, grants.secret), "hidden")
    mounts |= dict.fromkeys((place for place in PRIVATE if Path(place).is_dir()), "own")
    mounts |= dict.fromkeys(map(os.path.realpath, grants.writable), "written")
    arguments = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    covered: list[str] = []
    for path in sorted(mounts, key=lambda path: path.split("/")):
        how = mounts[path]
        if how in ("hidden", "own"):
            covered.append(path)
        if how != "shown" or any(path.startswith(f"{each}/") for each in covered):
            arguments += _mount(how, path, grants.temporary)
    # As root it could mount everything anew if it kept its capabilities.
    ends = ["--unshare-pid", "--unshare-ipc", "--die-with-parent", "--cap-drop", "ALL"]
    return [*arguments, *ends, *(["--unshare-net"] if closed else []), "sh", "-c", text]


def _mount(how: str, path: str, temporary: str) -> list[str]:
    if how == "own":
        # bubblewrap makes a /dev/shm of its own.
        return [] if path.startswith("/dev/") else ["--bind", temporary, path]
    if how == "written":
        return ["--bind", path, path]
    if how == "shown":
        return ["--ro-bind", path, path]
    return ["--tmpfs", path] if Path(path).is_dir() else ["--ro-bind", "/dev/null", path]


def _nono(text: str, grants: Grants, env: Mapping[str, str], *, closed: bool) -> list[str]:
    from harness_lib.system.install import launcher  # noqa: PLC0415 (hooks and most verbs need none)

    code = "from harness_lib.system.processes import engines; engines.enter()"
    secret = grants.secret
    readable = [*_all_but([*secret, grants.home]), *_all_but(secret, Path(grants.home))]
    readable += [path for path in grants.shown if any(_is_below(path, each) for each in secret)]
    writable = [grants.temporary]
    for path in grants.writable:
        contains = any(_is_below(each, path) for each in secret)
        writable += _all_but(secret, Path(path)) if contains else [path]
    # There may be thousands: too many for an argument.
    note = Path(grants.temporary, "grants")
    note.write_text(json.dumps([readable, writable, closed]), "utf-8")
    return [*launcher.confiner(code, env), str(note), text]


def _is_below(path: str, top: str) -> bool:
    return path.startswith(f"{os.path.realpath(top)}/")


def _all_but(hidden: Sequence[str], top: Path = Path("/")) -> Iterator[str]:
    """Yield the entries at and below `top` that together hold everything but `hidden`.

    Landlock allows trees, and cannot forbid a part of one.
    """
    real = [os.path.realpath(path) for path in hidden]
    above = {str(parent) for path in real for parent in Path(path).parents}
    return _entries(frozenset(real), above, top)


def _entries(hidden: frozenset[str], above: set[str], top: Path) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(top), key=lambda entry: entry.path)
    except OSError:
        return
    for entry in entries:
        if entry.is_symlink() or entry.path in hidden:
            continue
        if entry.path in above:
            yield from _entries(hidden, above, Path(entry.path))
        else:
            yield entry.path


def enter() -> None:
    """Confine this process to the grants in the file of the first argument, and run the second argument."""
    import sys  # noqa: PLC0415 (as below: only in the process that is to be confined)

    import nono_py  # noqa: PLC0415

    note = Path(sys.argv[1])
    readable, writable, closed = json.loads(note.read_text("utf-8"))
    note.unlink()
    for tries_left in reversed(range(TRIES)):
        try:
            nono_py.apply(_capabilities(nono_py, readable, writable, closed=closed))
            break
        except RuntimeError:
            # A file that it opens may just have been removed.
            if not tries_left:
                raise
    os.execv("/bin/sh", ["sh", "-c", sys.argv[2]])  # noqa: S606


def _capabilities(
    nono_py: ModuleType, readable: Iterable[str], writable: Iterable[str], *, closed: bool
) -> Any:
    found = nono_py.CapabilitySet()
    modes = [(path, nono_py.AccessMode.READ) for path in readable]
    modes += [(path, nono_py.AccessMode.READ_WRITE) for path in (*writable, *DEVICES)]
    for path, mode in modes:
        if Path(path).is_dir():
            found.allow_path(path, mode)
        elif Path(path).exists():
            found.allow_file(path, mode)
    if closed:
        found.block_network()
    return found
