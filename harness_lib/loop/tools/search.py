"""The tools `grep` and `glob`: search text in files, and files by name.

They skip files that git ignores, files that no tool may read, and symbolic links.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from harness_lib.errors import EnvSetupError
from harness_lib.loop import disk, keys, permissions, shell_words, trust
from harness_lib.loop.plugins import Result
from harness_lib.loop.tools import builtin
from harness_lib.loop.tools.builtin import Builtin, ToolError, number_of, path_of, text_of
from harness_lib.system.git import calls
from harness_lib.system.install import launcher
from harness_lib.text import escape, first

if TYPE_CHECKING:
    from harness_lib.loop.piped import Json
    from harness_lib.loop.runtime import Runtime

_MOST = 250
_MOST_FILES = 200_000
# Left out without git, which knows the ignored files.
_LEFT_OUT = frozenset(("__pycache__", "node_modules", "venv"))


def _grep(runtime: Runtime, tool_input: Json) -> Result:
    pattern = text_of(tool_input, "pattern")
    asked = {
        "pattern": pattern,
        "context": number_of(tool_input, "context") or 0,
        "limit": _MOST,
        # Each as it is opened, and as it is shown.
        "files": [
            (name, _shown(name)) for name in _files(runtime, tool_input, str(tool_input.get("glob") or ""))
        ],
    }
    seconds = builtin.usual_seconds(runtime.env)
    code = "from harness_lib.loop.tools.matching import main; sys.exit(main())"
    text, done = builtin.run_program(
        runtime,
        launcher.python(code, ()),
        keys.without(runtime, runtime.harness_environment()),
        stdin=json.dumps(asked).encode(),
        timeout=seconds,
    )
    if done.reason == "timeout":
        raise ToolError(f"the search took more than {seconds} seconds; narrow it, or take a simpler pattern")
    return Result(text or "nothing was found", error=done.code != 0)


def _glob(runtime: Runtime, tool_input: Json) -> Result:
    found = [_shown(name) for name in _files(runtime, tool_input, text_of(tool_input, "pattern"))]
    shown = first(found, _MOST, "; narrow the pattern")
    return Result(builtin.clipped(runtime, "\n".join(shown)) or "nothing was found")


def _shown(name: str) -> str:
    """Return the name of a file, which may be any bytes, as one line of text."""
    return escape(name).encode("utf-8", "backslashreplace").decode()


def _files(runtime: Runtime, tool_input: Json, pattern: str) -> Iterator[str]:
    """Yield the files that may be searched, named as seen from the session's directory. Raises ToolError."""
    directory = path_of(runtime, tool_input if tool_input.get("path") else {"path": "."})
    if directory.is_file():
        names, directory = [directory.name], directory.parent
    elif directory.is_dir():
        names = sorted(_below(directory))
    else:
        raise ToolError(f"{directory} does not exist")
    if pattern.startswith(("/", "~")) or ".." in pattern.split("/"):
        raise ToolError("a pattern names no directory above; use path for another directory")
    patterns = shell_words.expanded(pattern)
    if shell_words.HIDDEN in "".join(patterns):
        raise ToolError("braces in a pattern hold names, as *.{a,b} does, and not too many of them")
    matches = disk.matcher(*patterns) if pattern else None
    may_read, is_secret = permissions.readable(runtime), trust.secrets()
    here = f"{os.path.normpath(runtime.work_directory)}/"
    for name in names:
        path = os.path.normpath(directory / name)
        if matches and not matches(name):
            continue
        is_file = os.path.isfile(path) and not os.path.islink(path)  # noqa: PTH113, PTH114 (there may be many)
        if is_file and not is_secret(path) and may_read(path):
            yield path.removeprefix(here)


def _below(directory: Path) -> list[str]:
    """Return the names of the files below `directory`, without those that git ignores."""
    try:
        listed = calls.call(["ls-files", "-z", "-co", "--exclude-standard"], directory)
    except EnvSetupError:
        listed = None
    if listed and listed.returncode == 0:
        return list(dict.fromkeys(calls.decode(listed.stdout)))[:_MOST_FILES]
    found: list[str] = []
    for place, directories, names in os.walk(directory):
        directories[:] = [name for name in directories if name not in _LEFT_OUT and not name.startswith(".")]
        found += [os.path.relpath(os.path.join(place, name), directory) for name in names]  # noqa: PTH118
        if len(found) > _MOST_FILES:
            break
    return found


_PATH = "The directory or file to search, by default the working directory"

GREP = Builtin(
    name="grep",
    description=(
        "Search the text of files for a regular expression (Python's syntax; (?i) before it ignores case), "
        "line by line. Shows file:line:text. Files that git ignores are left out."
    ),
    inputs={
        "pattern": "The regular expression",
        "path?": _PATH,
        "glob?": "Only files whose names match, such as *.py or src/**/*.{ts,tsx}",
        "context?": (int, "How many lines to show before and after each"),
    },
    function=_grep,
    reads=True,
)

GLOB = Builtin(
    name="glob",
    description=(
        "Find files by name. A pattern without a slash is looked for in all directories (*.py), another one "
        "from `path` on (src/**/test_*.py). Files that git ignores are left out."
    ),
    inputs={
        "pattern": "The pattern: *, ?, [a-z], ** and {a,b}",
        "path?": _PATH,
    },
    function=_glob,
    reads=True,
)
