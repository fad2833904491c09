"""Build the command lines that confine a command: bubblewrap, and nono-py (Landlock, Seatbelt on macOS)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
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
# The number of a call of the kernel's, and how many capabilities there may be.
PR_CAPBSET_DROP, CAPABILITIES = 24, 64
# Where root can change the kernel.
KERNEL = ("/proc/sys", "/proc/sysrq-trigger")
# An empty file. In a sandbox /dev/null would be refused, and git stops if it cannot read its settings.
EMPTY = str(Path(__file__).parents[2] / "py.typed")
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
    for path in filter(os.path.exists, KERNEL):
        arguments += ["--ro-bind", path, path]
    for path in sorted(mounts, key=lambda path: path.split("/")):
        how = mounts[path]
        around = next((mounts[each] for each in map(str, Path(path).parents) if each in mounts), "shown")
        if how != "shown" or around in ("hidden", "own"):
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
    return ["--tmpfs", path] if Path(path).is_dir() else ["--ro-bind", EMPTY, path]


def _nono(text: str, grants: Grants, env: Mapping[str, str], *, closed: bool) -> list[str]:
    from harness_lib.system.install import launcher  # noqa: PLC0415 (hooks and most verbs need none)

    code = "from harness_lib.system.processes import engines; engines.enter()"
    secret = grants.secret
    readable = [*_all_but([*secret, grants.home, "/dev"]), *_all_but(secret, Path(grants.home))]
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

    nono = _nono_py(sys.path)
    note = Path(sys.argv[1])
    readable, writable, closed = json.loads(note.read_text("utf-8"))
    note.unlink()
    for tries_left in reversed(range(TRIES)):
        try:
            nono.apply(_capabilities(nono, readable, writable, closed=closed))
            break
        except RuntimeError:
            # A file that it opens may just have been removed.
            if not tries_left:
                raise
    if sys.platform == "linux" and os.geteuid() == 0:
        _drop_capabilities()
    os.execv("/bin/sh", ["sh", "-c", sys.argv[2]])  # noqa: S606


def _drop_capabilities() -> None:
    """Let the next program have no capability: root reads the memory of all processes by one of them."""
    import ctypes  # noqa: PLC0415 (only root needs it)

    libc = ctypes.CDLL(None)
    for capability in range(CAPABILITIES):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


def _nono_py(path: Sequence[str]) -> Any:
    """Return the module that implements nono_py: the package also loads pydantic, for half a second."""
    from importlib.machinery import PathFinder  # noqa: PLC0415 (as in `enter`)
    from importlib.util import module_from_spec  # noqa: PLC0415

    package = PathFinder.find_spec("nono_py", path)
    spec = package and PathFinder.find_spec("_nono_py", package.submodule_search_locations)
    if spec is None or spec.loader is None:
        raise ImportError("nono_py", name="nono_py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _capabilities(nono_py: Any, readable: Iterable[str], writable: Iterable[str], *, closed: bool) -> Any:
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
