"""The stage `assemble`, second half: what the model is told before anything is said."""

from __future__ import annotations

import os
from pathlib import Path

from harness_lib.loop import listing, project
from harness_lib.loop.piped import Piped, as_object
from harness_lib.loop.runtime import Runtime

_AGENTS_LIMIT = 32 * 1024


def prompts(runtime: Runtime, piped: Piped) -> Piped:
    """Set `system` to the prompts of all sources and the instructions here, and go on to `send`."""
    asked = runtime.system
    parts = [_read(path) for path in _fragments(runtime)] if asked is None else [asked.strip()]
    parts += [_read(path, _AGENTS_LIMIT) for path in instructions(runtime)]
    system = "\n\n".join(part for part in parts if part)
    return {**(as_object(piped) or {}), "system": system, "next_state": "send"}


def instructions(runtime: Runtime) -> list[Path]:
    """Return the AGENTS.md of home, then one for each directory from the repository's root to the session's.

    CLAUDE.md counts where there is none. A link out of the project counts as none: it could lead to a secret.
    """
    files = [path] if (path := runtime.home.parent / "AGENTS.md").is_file() else []
    work_directory = runtime.work_directory.resolve()
    root = project.root(runtime, work_directory)
    way = (*reversed(work_directory.parents), work_directory)
    for directory in way[way.index(root) :]:
        for name in ("AGENTS.md", "CLAUDE.md"):
            path = directory / name
            if path.is_file():
                if project.is_text_of(root, path) and path not in files:
                    files.append(path)
                break
    return files


def _fragments(runtime: Runtime) -> list[Path]:
    return [
        path
        for source in runtime.sources
        for name in listing.names(f"{source}{os.sep}prompts")
        if name.endswith(".md")
        and project.has(project.of_source(runtime, source), path := Path(source, "prompts", name))
    ]


def _read(path: Path, limit: int | None = None) -> str:
    """Return the text of `path`, at most `limit` bytes; what cannot be read says nothing."""
    try:
        with path.open("rb") as stream:
            data = stream.read() if limit is None else stream.read(limit + 1)
    except OSError:
        return ""
    text = data[:limit].decode("utf-8", "replace").strip()
    return f"{text}\n[{path} goes on; read the file for the rest]" if limit and len(data) > limit else text
