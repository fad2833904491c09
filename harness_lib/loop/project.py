"""Which directory is a project, and what is text of it: a link that leads out could lead to a secret."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness_lib.loop import trust
from harness_lib.loop.secret_files import is_secret

if TYPE_CHECKING:
    from harness_lib.loop.runtime import Runtime


def root(runtime: Runtime, start: Path) -> Path:
    """Return the root of the repository, else the outermost directory with `.harness`, else `start`."""
    for directory in (start, *start.parents):
        git = directory / ".git"
        # An empty one anywhere above, as anybody can make it in /tmp, is no repository.
        if git.is_file() or (git / "HEAD").is_file():
            return directory
    for directory in (*reversed(start.parents), start):
        source = directory / ".harness"
        if source.is_dir() and source != runtime.home:
            return directory
    return start


def of_source(runtime: Runtime, source: str) -> Path | None:
    """Return the project that the source came with; None where it is the person's own."""
    if not trust.is_projects(runtime, source):
        return None
    path = Path(source)
    return next(parent for parent in (path, *path.parents) if parent.name == ".harness").parent


def has(project: Path | None, path: Path) -> bool:
    """Return whether `path` is a file, and one of `project` where there is one."""
    return path.is_file() and (project is None or is_text_of(project, path))


def is_text_of(project: Path, path: Path) -> bool:
    """Return whether `path` leads to a file in `project` that a model may be told of."""
    return path.resolve().is_relative_to(project.resolve()) and not is_secret(path)
