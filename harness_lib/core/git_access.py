"""Say whether commits can be made at all: a sandbox may close the git directory."""

from __future__ import annotations

from pathlib import Path

from harness_lib import typed
from harness_lib.agents import registry
from harness_lib.core.context import Context
from harness_lib.errors import EnvSetupError
from harness_lib.system.files import atomic
from harness_lib.system.git import status
from harness_lib.system.git.repository import Git
from harness_lib.system.processes import owner

CURE = "Add them to .gitignore, or type: harness init --gitignore"


def closed(git: Git) -> Path | None:
    """Return the git directory that cannot be written from here, if there is one."""
    places = dict.fromkeys((git.common_dir, git.git_dir))
    return next((place for place in places if place.is_dir() and not atomic.can_write(place)), None)


def require(ctx: Context, git: Git) -> None:
    """Raise EnvSetupError, with what a person types, if no commit can be made from here."""
    place = closed(git)
    if place is not None:
        message = f"{place} is not writable from here, so no work could be kept. Nothing was changed."
        raise EnvSetupError(message, cure(ctx, git, place))


def cure(ctx: Context, git: Git, place: Path) -> str:
    """Return what to do about the closed `place`."""
    writable = registry.WRITABLE.get(owner.in_agent(ctx.env) or "")
    if writable is None:
        command = f"ls -ld {typed.word(place)}"
        return f"Make it writable, or start the agent so that its sandbox allows it ({command})."
    return writable(str(git.common_dir), is_linked=git.git_dir != git.common_dir)


def offer(git: Git) -> str | None:
    """Return which lines are missing, in a sentence; None if none is."""
    lines = status.offered_rules(git)
    return f"git does not ignore {', '.join(lines)} here." if lines else None
