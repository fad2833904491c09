"""Decide which parts of a project are used: its text always, programs, settings and keys after `hs trust`.

Opening a repository must not run its programs, nor send a key to an address that it names. Trust is a
fingerprint of the content, kept in home: when the content changes, the user is asked again. No tool reads
credentials, or what the system shows of a process.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

from harness_lib.errors import ConfigError
from harness_lib.loop import disk
from harness_lib.loop.runtime import Runtime, once
from harness_lib.system.processes import sandbox, sandbox_places
from harness_lib.text import some

# The settings that are one of some words: the variable of each, and its words.
SETTINGS: dict[str, tuple[str, Sequence[str]]] = {
    "approve": ("HARNESS_APPROVE", ("auto", "ask", "read-only")),
    "sandbox": (sandbox.CHOICE, sandbox.MODES),
}
FILE = "trusted.json"
# The sources of which the user was told that they are not used; None to tell nothing.
TOLD = "not used"
_DIRECTORIES = ("commands", "hooks.d", "lib", "providers", "tools")
_FILES = (".auth.json", "mcp.json", "models.conf", "settings.conf", "settings.json")
REFUSED = "holds credentials or shows a process: no tool reads it. Ask the user for what you need of it."
# In whichever source they are.
_OURS = frozenset((".auth.json", ".auth-cache.json"))
# Files and directories below the user's home. The first may be read in a sandbox: who installs needs them.
_OF_PACKAGES = (".npmrc", ".composer/auth.json", ".config/composer/auth.json", ".hex/hex.config")
_OF_OTHERS = (*_OF_PACKAGES, *sandbox_places.SECRETS, *sandbox_places.LOGINS, *sandbox_places.CLOUD_PATHS)
_OF_A_PROCESS = re.compile(r"/proc/\d+/")
# More links than any system follows.
_MOST_LINKS = 40


@once
def usable(runtime: Runtime, *sources: str) -> list[str]:
    """Return those of `sources`, or of the run's, whose programs, settings and credentials may be used.

    A project's are used when it has nothing to trust, or is trusted as it is now.
    """
    found = []
    told: set[str] | None = runtime.kept.setdefault(TOLD, set())
    new = []
    for source in sources or runtime.sources:
        asks = project_of_source(runtime, source) and _files(Path(source))
        if not asks or is_trusted(runtime, source):
            found.append(source)
        elif told is not None and source not in told:
            told.add(source)
            new.append(source)
    if new:
        runtime.notice(
            f"the plugins and settings in {some(new)} are not used; look at them, then run: hs trust"
        )
    return found


def setting(runtime: Runtime, name: str) -> str:
    """Return the setting `name`: the run's option, else the most local usable one, else the default.

    Raises ConfigError for a word that it cannot be.
    """
    variable, words = SETTINGS[name]
    usual = runtime.approve if name == "approve" else sandbox.DEFAULT
    files = (disk.read_conf(Path(source, "settings.conf")) for source in reversed(usable(runtime)))
    set_there = (values[name] for values in files if values.get(name))
    chosen = runtime.env.get(variable) or next(set_there, usual)
    if chosen not in words:
        message = f"{name}={chosen} must be one of {', '.join(words)}"
        raise ConfigError(message, f"It is set in {variable} or in a settings.conf.")
    return chosen


def is_trusted(runtime: Runtime, source: str) -> bool:
    """Return whether the user has trusted the project's `source` as it is now."""
    known = load(runtime).get(os.path.realpath(source), "")
    return known != "" and known == fingerprint(source)


def fingerprint(source: str) -> str:
    """Return a hash of the files in `source` that need trust; "" if there are none."""
    import hashlib  # noqa: PLC0415 (only where a project has something to trust)

    files = _content(Path(source))
    digest = hashlib.sha256()
    for path in files:
        data = _data(path)
        head = f"{path.relative_to(source)}\0{os.access(path, os.X_OK)}\0{len(data)}\0"
        digest.update(head.encode("utf-8", "surrogateescape") + data)
    return digest.hexdigest() if files else ""


def load(runtime: Runtime) -> dict[str, str]:
    """Return the fingerprints that were trusted, by directory."""
    stored = disk.read_object(runtime.home / FILE)
    return {key: value for key, value in stored.items() if isinstance(value, str)}


def save(runtime: Runtime, sources: list[str]) -> None:
    """Trust `sources` as they are now."""
    trusted = load(runtime) | {os.path.realpath(source): fingerprint(source) for source in sources}
    text = json.dumps(trusted, indent=2) + "\n"
    disk.write(runtime.home / FILE, text.encode(), durable=True)


def content(runtime: Runtime, source: str) -> list[Path]:
    """Return the files that need trust, for the user to look at."""
    return _content(Path(source)) if project_of_source(runtime, source) else []


def _content(source: Path) -> list[Path]:
    # Skills are read anyway, but take the place of the user's own only when they are trusted.
    return [*_files(source), *_there({path / "SKILL.md" for path in _entries(source / "skills")})]


def _files(source: Path) -> list[Path]:
    """Return the files that are used only after `hs trust`."""
    below = (path for name in _DIRECTORIES for path in _below(source / name, has_stages=name == "hooks.d"))
    return _there({*(source / name for name in _FILES), *below})


def _there(paths: set[Path]) -> list[Path]:
    # Without permission to look, `Path.exists` raises an error.
    return sorted(path for path in paths if os.path.exists(path))  # noqa: PTH110


def _below(directory: Path, *, has_stages: bool = False, behind: bool = False) -> Iterator[Path]:
    """Yield the files below a directory of plugins; `behind`: a link leads to it.

    There nothing but stages is looked into: a link may lead to the root of the file system.
    """
    behind |= directory.is_symlink()
    for path in _entries(directory):
        if not disk.is_directory(path):
            yield path
        elif has_stages or not behind:
            yield from _below(path, behind=behind)


def _entries(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError:
        return []


def _data(path: Path) -> bytes:
    """Return the content of `path`; nothing for a device."""
    try:
        size = path.stat().st_size if path.is_file() else 0
        with path.open("rb") if size else io.BytesIO() as stream:
            return stream.read(size)
    except OSError:
        return b""


def project_root(runtime: Runtime, start: Path) -> Path:
    """Return the root of the repository, else the outermost directory with `.harness`, else `start`."""
    for directory in (start, *start.parents):
        git = directory / ".git"
        # An empty one anywhere above, as any user can make it in /tmp, is no repository.
        if git.is_file() or (git / "HEAD").is_file():
            return directory
    for directory in (*reversed(start.parents), start):
        source = directory / ".harness"
        if source.is_dir() and source != runtime.home:
            return directory
    return start


def project_of_source(runtime: Runtime, source: str) -> Path | None:
    """Return the project that the source came with; None where it is the user's own."""
    path = Path(source)
    if any(path.is_relative_to(ours) for ours in (runtime.home, runtime.root)):
        return None
    return next((place.parent for place in (path, *path.parents) if place.name == ".harness"), None)


def has_text(project: Path | None, path: Path) -> bool:
    """Return whether `path` is a file, and one in `project`, if any, that a model may be told of."""
    if not project or not path.is_file():
        return path.is_file()
    return path.resolve().is_relative_to(project.resolve()) and not is_secret(path)


def is_secret(path: Path) -> bool:
    """Return whether `path` is or leads through a file that no tool may read; links are followed."""
    return any(map(_closed(), way(path)))


def secrets() -> Callable[[str], bool]:
    """Return what `is_secret` tells, for many files that are no links: each directory is looked at once."""
    is_closed = _closed()

    @cache
    def real(directory: str) -> str:
        return "" if is_secret(Path(directory)) else os.path.realpath(directory)

    def is_one(path: str) -> bool:
        directory, name = os.path.split(path)
        return not real(directory) or is_closed(os.path.join(real(directory), name))  # noqa: PTH118 (many)

    return is_one


def _closed() -> Callable[[str], bool]:
    """Return a function that tells whether no tool may go to a place, without looking at what is there."""
    home = os.path.realpath(Path.home())
    closed = tuple(f"{home}{os.sep}{name}" for name in _OF_OTHERS)
    below = tuple(f"{each}{os.sep}" for each in closed)

    def is_closed(step: str) -> bool:
        ours = step.rpartition(os.sep)[2].casefold() in _OURS
        return ours or bool(_OF_A_PROCESS.match(step)) or step in closed or step.startswith(below)

    return is_closed


def way(path: Path) -> Iterator[str]:
    """Yield each place that the system passes on its way to the absolute `path`; the last is its end."""
    at, links = os.sep, 0
    left = [*reversed(path.parts[1:])]
    while left:
        part = left.pop()
        step = str(Path(at).parent) if part == ".." else f"{at.rstrip(os.sep)}{os.sep}{part}"
        yield step
        try:
            target = Path(step).readlink()
        except OSError:
            at = step
            continue
        links += 1
        if links > _MOST_LINKS:
            return
        at = target.anchor or at
        left += reversed(target.parts[1:] if target.anchor else target.parts)
