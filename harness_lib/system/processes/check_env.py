"""The environment that a check runs in: without what would turn its test runner."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

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
