"""Let git ignore caches and environments that nobody commits, whether or not a project's rules name them.

Git reads our list as its weakest rules (`core.excludesFile`), before the person's own file of that kind. So a
`!` in any .gitignore, in info/exclude or in the person's file wins, and a tracked file is never left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from harness_lib import sha256
from harness_lib.system.files import atomic
from harness_lib.system.git.calls import call

# With a slash only a directory: a program may be called `venv`, and `.venv` is often a link.
PATTERNS = (
    "__pycache__/",
    ".pytest_cache/",
    ".mypy_cache/",
    ".ruff_cache/",
    ".tox/",
    "node_modules",
    ".venv",
    "venv/",
    ".gradle/",
    ".DS_Store",
)
NAMES = frozenset(pattern.rstrip("/") for pattern in PATTERNS)
CRATE, BUILT = "Cargo.toml", "target"
# So many directories below the top a crate is looked for; a workspace builds into the directory of its own.
CRATE_DEPTH = 2

# The commands that ask what is ignored. `checkout` is none of them: it overwrites ignored files.
_ASKING = frozenset(("add", "status", "clean", "check-ignore", "--exclude-standard"))
# What in a configuration may say where the person's file is.
_MAY_NAME = re.compile(rb"exclude|include|worktreeconfig", re.IGNORECASE)
_SPECIAL = re.compile(r"([\\*?\[ ])")


def settings(args: Sequence[str], top: Path, common_dir: Path) -> tuple[str, ...]:
    """Return the options that let git ignore caches in the work tree `top`; none if `args` do not ask."""
    if _ASKING.isdisjoint(args):
        return ()
    lines = "\n".join((*PATTERNS, *built(top), ""))
    content = os.fsencode(lines) + _read(_persons_file(top, common_dir))
    # Named by its content, so that nobody reads what another work tree has just replaced.
    path = common_dir / "harness" / f"ignored-{sha256.digest(content)[:16]}"
    try:
        if not path.exists():
            atomic.write(path, content, durable=False, make=True)
    except OSError:
        # Of a submodule that we may only read; where our own repository cannot be written nothing else can.
        return ()
    return ("-c", f"core.excludesFile={path}")


def built(top: Path) -> list[str]:
    """Return the patterns of the directories in which Cargo builds: each beside a `Cargo.toml`."""
    return sorted(_SPECIAL.sub(r"\\\1", crate) + f"{BUILT}/" for crate in _crates(top, "/", CRATE_DEPTH))


def _crates(place: Path, name: str, depth: int) -> Iterator[str]:
    """Yield the directories with a crate, as paths from the top that begin and end with `/`."""
    try:
        with os.scandir(place) as entries:
            names = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    except OSError:
        return
    if CRATE in names:
        yield name
    for below, is_directory in names.items() if depth else ():
        if is_directory and below not in NAMES and not below.startswith(".") and below.isprintable():
            yield from _crates(place / below, f"{name}{below}/", depth - 1)


def _persons_file(top: Path, common_dir: Path) -> Path:
    """Return the file of rules that the person has for every repository, there or not."""
    home, shared = Path("~").expanduser(), os.environ.get("XDG_CONFIG_HOME")
    own = (Path(shared) if shared else home / ".config") / "git"
    everywhere = os.environ.get("GIT_CONFIG_GLOBAL")
    files = [Path(everywhere)] if everywhere else [own / "config", home / ".gitconfig"]
    files += [common_dir / "config", Path(os.environ.get("GIT_CONFIG_SYSTEM", "/etc/gitconfig"))]
    configured = b"\n".join(map(_read, files))
    told = tuple(sorted(item for item in os.environ.items() if item[0].startswith("GIT_CONFIG_")))
    # To ask git takes a process, in every verb.
    asked = _asked(top, configured, told) if _MAY_NAME.search(configured + repr(told).encode()) else ""
    return top / asked if asked else own / "ignore"


@lru_cache(maxsize=8)
def _asked(top: Path, _configured: bytes, _told: object) -> str:
    question = ("config", "--type=path", "--get", "core.excludesFile")
    return os.fsdecode(call(question, top).stdout).rstrip("\n")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
