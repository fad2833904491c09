"""Start a command that is confined, by bubblewrap or by nono-py (Landlock, Seatbelt on macOS)."""

from __future__ import annotations

import errno
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from harness_lib.errors import EnvSetupError
from harness_lib.system.processes import confine, environment
from harness_lib.system.processes.child import Child, Command
from harness_lib.text import Strings

Engine = Literal["bubblewrap", "nono"]
ENGINES: tuple[Engine, ...] = get_args(Engine)
TITLES: Mapping[Engine, str] = {"bubblewrap": "bubblewrap", "nono": "Landlock (nono)"}
# Directories of temporary files: under bubblewrap each command has its own.
PRIVATE = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 (nothing is made there)
# Where root can change the kernel.
KERNEL = ("/proc/sys", "/proc/sysrq-trigger")
# An empty file. In a sandbox /dev/null would be refused, and git stops if it cannot read its settings.
EMPTY = str(Path(__file__).parents[2] / "py.typed")
# In a name that is not UTF-8: nono cannot be told of it, so a command does not read it.
_BYTES = re.compile("[\udc80-\udcff]")


class Grants(NamedTuple):
    """What a command may do: absolute paths that exist.

    It reads everything but `secret`; `shown` and `writable` count where they are the same or deeper.
    `protected` is not written by bubblewrap, whatever is writable. `home` is the user's home directory; ""
    where nothing in it is secret.
    """

    temporary: str
    writable: Strings
    secret: Strings
    shown: Strings
    protected: Strings
    home: str


def is_within(path: str, *tops: str) -> bool:
    """Return whether `path` is one of `tops` or below one."""
    return f"{path}/".startswith(tuple(f"{top.rstrip('/')}/" for top in tops))


def command(
    engine: Engine,
    argv: Sequence[str],
    grants: Grants,
    env: environment.Env,
    *,
    closed: bool,
    platform: str = sys.platform,
) -> Command:
    """Return what runs `argv` with `grants` and `env`; `closed`: without a network.

    bubblewrap keeps a loopback interface of its own then.
    """
    if engine == "bubblewrap":
        return Command(_bubblewrap(argv, grants, env, closed=closed), env)
    from harness_lib.system.install import launcher  # noqa: PLC0415 (hooks and most verbs need none)

    listed = _listed(grants)
    if platform == "linux":
        try:
            nono_py = sys.modules.get(confine.MODULE) or confine.load(launcher.nono(env))
        except ImportError as error:
            raise EnvSetupError(f"nono-py cannot be loaded: {error}") from error
        starter = partial(_start_confined, nono_py, listed, closed=closed)
        return Command(argv, env, starter)
    code = "from harness_lib.system.processes import confine; confine.enter()"
    # There may be thousands: too many for an argument. Commands that run at once each have their own.
    descriptor, note = tempfile.mkstemp(prefix="grants-", dir=grants.temporary)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(b"\0".join(map(os.fsencode, ["C" * closed, *listed])))
    return Command([*launcher.python(code, ()), note, launcher.nono(env), *argv], env)


def _bubblewrap(argv: Sequence[str], grants: Grants, env: environment.Env, *, closed: bool) -> list[str]:
    # Links are followed: what they lead to is hidden, or written.
    mounts = dict.fromkeys(map(os.path.realpath, grants.shown), "shown")
    mounts |= dict.fromkeys(map(os.path.realpath, grants.secret), "hidden")
    mounts |= dict.fromkeys((place for place in PRIVATE if Path(place).is_dir()), "own")
    mounts |= dict.fromkeys(map(os.path.realpath, grants.writable), "written")
    mounts |= dict.fromkeys(map(os.path.realpath, grants.protected), "protected")
    arguments = [_bwrap(grants, env), "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for path in filter(os.path.exists, KERNEL):
        arguments += ["--ro-bind", path, path]
    for path in sorted(mounts, key=lambda path: path.split("/")):
        how = mounts[path]
        around = next((mounts[each] for each in map(str, Path(path).parents) if each in mounts), "shown")
        if how != "shown" or around in ("hidden", "own"):
            arguments += _mount(how, path, grants.temporary)
    # As root it could mount everything anew if it kept its capabilities.
    ends = ["--unshare-pid", "--unshare-ipc", "--die-with-parent", "--cap-drop", "ALL"]
    return [*arguments, *ends, *(["--unshare-net"] if closed else []), *argv]


def _bwrap(grants: Grants, env: environment.Env) -> str:
    """Return the path of bwrap, but of none that commands may have written. Raises EnvSetupError."""
    # Where all may be written, no place is safer than another.
    written = [path for each in grants.writable if (path := os.path.realpath(each)) != os.sep]
    entries = environment.absolute(env.get("PATH", os.defpath)).split(os.pathsep)
    for path in filter(None, (environment.find("bwrap", each) for each in entries)):
        if not is_within(os.path.realpath(Path(path).parent), *written):
            return path
    raise EnvSetupError("bwrap is not on the PATH", "Install bubblewrap, or go without it: --sandbox off")


def _mount(how: str, path: str, temporary: str) -> list[str]:
    if how == "own":
        # bubblewrap makes a /dev/shm of its own.
        return [] if path.startswith("/dev/") else ["--bind", temporary, path]
    if how == "written":
        return ["--bind", path, path]
    if how in ("shown", "protected"):
        return ["--ro-bind", path, path]
    return ["--tmpfs", path] if Path(path).is_dir() else ["--ro-bind", EMPTY, path]


def _listed(grants: Grants) -> list[str]:
    """Return the paths of `grants` for nono, each after R or W."""
    # Each of these steps asks for all of them.
    secret = [os.path.realpath(path) for path in grants.secret]
    below_secret = tuple(f"{path}/" for path in secret)
    readable = list(_all_but([*secret, grants.home, "/dev"]))
    if grants.home:
        readable += _all_but(secret, Path(grants.home))
    readable += [path for path in grants.shown if path.startswith(below_secret)]
    writable = [grants.temporary]
    for path in grants.writable:
        top = f"{os.path.realpath(path)}/"
        contains = any(each.startswith(top) for each in secret)
        writable += _all_but(secret, Path(path)) if contains else [path]
    return [*(f"R{path}" for path in readable), *(f"W{path}" for path in writable)]


def _all_but(hidden: Sequence[str], top: Path = Path("/")) -> Iterator[str]:
    """Yield the entries at and below `top` that together hold everything but `hidden`, which has no links.

    Landlock allows trees, and cannot forbid a part of one.
    """
    closed, above = frozenset(hidden), {str(parent) for path in hidden for parent in Path(path).parents}
    left = [str(top)]
    while left:
        try:
            entries = sorted(os.scandir(left.pop()), key=lambda entry: entry.path)
        except OSError:
            continue
        for entry in entries:
            if entry.is_symlink() or entry.path in closed:
                continue
            if entry.path in above:
                left.append(entry.path)
            elif not _BYTES.search(entry.name):
                yield entry.path


def _start_confined(
    nono_py: Any, grants: Sequence[str], begin: Callable[[], Child], *, closed: bool
) -> Child:
    """Call `begin` in a thread that is confined to `grants`; return the child once that thread is gone.

    The rules of Landlock belong to a thread, and a child begins with those of the thread that starts it. So
    our own process stays free, and loads nono-py once. On macOS such rules belong to a process: see
    `confine.enter`. A program that `begin` starts must do nothing before: it has the limits of that thread,
    and so could read our memory through it.
    Each of `grants` is R or W before a path; `closed`: without a network.
    Raises what `begin` raises, EnvSetupError if nono confines nothing, and OSError.
    """
    libc = confine.libc_of_root()
    started: list[Child] = []
    failed: list[BaseException] = []

    def confined() -> None:
        # Nothing is imported here: the file might not be readable.
        try:
            _confine(nono_py, grants, libc, closed=closed)
            started.append(begin())
        except BaseException as error:  # noqa: BLE001 (raised in the thread of the caller)
            failed.append(error)

    thread = threading.Thread(target=confined)
    try:
        thread.start()
    except RuntimeError as full:
        # As it is for a process for which the system has no room.
        raise BlockingIOError(errno.EAGAIN, str(full)) from full
    thread.join()
    # It is in the kernel for a moment longer.
    while Path(f"/proc/self/task/{thread.native_id}").exists():
        time.sleep(0.0001)
    for error in failed:
        raise error
    return started[0]


def _confine(nono_py: Any, grants: Sequence[str], libc: Any, *, closed: bool) -> None:
    try:
        confine.apply(nono_py, grants, closed=closed)
    except (RuntimeError, ValueError) as error:
        raise EnvSetupError(str(error)) from error
    confine.drop_capabilities(libc)
    if _reads_root() and not {"R/", "W/"} & set(grants):
        raise EnvSetupError("nono-py is there, but confines nothing")


def _reads_root() -> bool:
    """Return whether this thread may read the root directory, of which only parts are granted."""
    try:
        os.close(os.open("/", os.O_RDONLY))
    except PermissionError:
        return False
    return True
