"""Let git ignore caches and environments that nobody commits, whether or not a project's rules name them.

Git reads our list as its weakest rules (`core.excludesFile`), before the person's own file of that kind. So a
`!` in any .gitignore, in info/exclude or in the person's file wins, and a tracked file is never left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from harness_lib import sha256
from harness_lib.system.files import atomic
from harness_lib.system.git.calls import call, decode

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

# The commands that ask what is ignored. `checkout` is not one of them: it overwrites ignored files.
_ASKING = frozenset(("add", "status", "clean", "check-ignore", "--exclude-standard"))
# What in a configuration may say where the person's file is.
_MAY_NAME = re.compile(rb"exclude|include|worktreeconfig", re.IGNORECASE)
_SPECIAL, _ESCAPED = re.compile(r"([\\*?\[ ])"), r"\\\1"


def settings(args: Sequence[str], top: Path, git_dir: Path, common_dir: Path) -> tuple[str, ...]:
    """Return the options that let git ignore caches in the work tree `top`; none if `args` do not ask."""
    if _ASKING.isdisjoint(args):
        return ()
    try:
        content = os.fsencode("\n".join((*PATTERNS, *_built(top, git_dir), "")))
        content += _read(_persons_file(top, common_dir))
        # Named by its content, so that nobody reads what another work tree has just replaced.
        path = common_dir / "harness" / f"ignored-{sha256.digest(content)[:16]}"
        if not path.exists():
            atomic.write(path, content, durable=False, make=True)
    except OSError:
        # Of a submodule that we may only read; where our own repository cannot be written nothing else can.
        return ()
    return ("-c", f"core.excludesFile={path}")


def _built(top: Path, git_dir: Path) -> list[str]:
    """Return the patterns of the directories in which Cargo builds: each beside a `Cargo.toml`.

    One that git does not track yet is found at the top and one directory below it.
    """
    tracked = _tracked_crates(top, git_dir)
    with os.scandir(top) as entries:
        below = [f"{entry.name}/" for entry in entries if entry.is_dir(follow_symlinks=False)]
    new = (crate for crate in ("", *below) if Path(top, crate, CRATE).exists())
    crates = {crate for crate in (*tracked, *new) if not crate or crate.isprintable()}
    return [f"/{_SPECIAL.sub(_ESCAPED, crate)}{BUILT}/" for crate in sorted(crates)]


def _tracked_crates(top: Path, git_dir: Path) -> list[str]:
    # To ask git takes a process; git may leave out of a name what the one before begins with.
    if CRATE[1:6].encode() not in _read(git_dir / "index"):
        return []
    asked = ("ls-files", "-z", "--", f":(top,glob)**/{CRATE}")
    paths = decode(call(asked, top, env={"GIT_DIR": str(git_dir), "GIT_WORK_TREE": str(top)}).stdout)
    return [path.removesuffix(CRATE) for path in paths]


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
    may_name = _MAY_NAME.search(configured + repr(told).encode())
    asked = _asked(top, common_dir, configured, told) if may_name else ""
    return top / asked if asked else own / "ignore"


@lru_cache(maxsize=8)
def _asked(top: Path, common_dir: Path, _configured: bytes, _told: object) -> str:
    question = ("config", "--type=path", "--get", "core.excludesFile")
    return os.fsdecode(call(question, top, env={"GIT_DIR": str(common_dir)}).stdout).rstrip("\n")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
