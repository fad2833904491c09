"""Environments: our PATH, what others can read of ours, and the one that a check runs in.

With `.`, an empty or another relative entry in PATH, we would run the project's own `git` and `python3`.
`/proc/PID/environ` shows the memory that the kernel has filled at the start, whatever has become of a
variable since; our own copies of the variables lie elsewhere, and stay.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, MutableMapping
from pathlib import Path

_STAT, _MEMORY = Path("/proc/self/stat"), Path("/proc/self/mem")
# Fields of /proc/PID/stat behind the name, counted from 0: proc(5) numbers them 3, 50 and 51.
_ENV_START, _ENV_END = 47, 48
# Orders for a runner or an interpreter that stand in no file and on no command line.
_ORDERS = frozenset(
    (
        *(
            "PYTEST_ADDOPTS",
            "PYTEST_PLUGINS",
            "PYTHONOPTIMIZE",
            "PYTHONSTARTUP",
            "PYTHONINSPECT",
            "TOX_OVERRIDE",
        ),
        *("NODE_OPTIONS", "npm_config_script_shell", "npm_config_node_options", "BUN_OPTIONS"),
        *("MAKEFLAGS", "GNUMAKEFLAGS", "MFLAGS", "MAKEFILES", "BASH_ENV", "ENV", "RUBYOPT", "PERL5OPT"),
        *("MAVEN_ARGS", "DOTNET_STARTUP_HOOKS"),
    )
)
_ORDERS_LIKE = re.compile(r"CARGO_TARGET_\w+_RUNNER|BASH_FUNC_.*")
# Where things are looked for: what lies in the work tree is the attempt's to write.
_PLACES = frozenset(
    ("PATH", "PYTHONPATH", "NODE_PATH", "RUBYLIB", "PERL5LIB", "LD_PRELOAD", "LD_LIBRARY_PATH")
)
# Of these variables only such words go; the rest is memory, modules and the like.
_FLAGS = {
    "GOFLAGS": re.compile(r"-{1,2}(run|skip|exec|overlay|toolexec|vet|list)\b"),
    **dict.fromkeys(
        ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "MAVEN_OPTS", "GRADLE_OPTS"),
        re.compile(r"-(D(skip|maven\.test|test)|javaagent)"),
    ),
}


def absolute(path: str) -> str:
    """Return `path` (as in PATH) less its relative entries; the system's own where nothing is left."""
    return os.pathsep.join(filter(os.path.isabs, path.split(os.pathsep))) or os.defpath.lstrip(os.pathsep)


def find(program: str, path: str | None = None) -> str | None:
    """Return where `program` lies on `path`, by default on ours; None if nowhere."""
    import shutil  # noqa: PLC0415 (every verb loads this file, and few look for a program)

    return shutil.which(program, path=path)


def drop_relative(env: MutableMapping[str, str]) -> None:
    """Take relative entries out of the PATH in `env`, for us and for all that we start."""
    if "PATH" in env:
        env["PATH"] = absolute(env["PATH"])


def blank(names: Collection[str]) -> bool:
    """Overwrite the values of the variables `names` there; return whether this system lets us."""
    try:
        fields = _STAT.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        at, end = int(fields[_ENV_START]), int(fields[_ENV_END])
        with _MEMORY.open("r+b", buffering=0) as memory:
            memory.seek(at)
            for entry in memory.read(end - at).split(b"\0"):
                name, _, value = entry.partition(b"=")
                if os.fsdecode(name) in names:
                    memory.seek(at + len(name) + 1)
                    memory.write(bytes(len(value)))
                at += len(entry) + 1
    except OSError:
        return False
    return True


def cleaned(env: Mapping[str, str], top: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return `env` for a check in the work tree `top`, and the names of what is missing or shorter in it."""
    clean = {}
    for name, value in env.items():
        if name in _ORDERS or _ORDERS_LIKE.fullmatch(name):
            continue
        clean[name] = _value(name, value, top)
    changed = (name for name in env if name not in clean or clean[name] != env[name])
    return clean, tuple(sorted(changed))


def _value(name: str, value: str, top: Path) -> str:
    turning = _FLAGS.get(name)
    if turning is not None:
        words = value.split()
        kept = [word for word in words if not turning.match(word)]
        return value if len(kept) == len(words) else " ".join(kept)
    if name not in _PLACES or not value:
        return value
    entries = value.split(os.pathsep)
    return os.pathsep.join(
        entry for entry in entries if not _is_inside(entry, top) or _is_installed(name, entry)
    )


def _is_inside(entry: str, top: Path) -> bool:
    """Return whether `entry` is in the work tree, or relative to wherever a program happens to be."""
    if not entry.startswith("/"):
        return True
    real = Path(os.path.realpath(entry))
    return real == top or top in real.parents


def _is_installed(name: str, entry: str) -> bool:
    """Return whether programs were installed there by a package manager: checks cannot do without these."""
    place = Path(entry)
    if name != "PATH" or not place.is_absolute():
        return False
    return (place.parent / "pyvenv.cfg").is_file() or place.parts[-2:] == ("node_modules", ".bin")
