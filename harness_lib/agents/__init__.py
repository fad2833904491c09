"""The coding agents, one file each: its signs, its hooks and their answers, how `harness run` drives it.

Nothing here starts a process or reads a clock: a line and a moment go in, a report comes out.
"""

from __future__ import annotations

TYPE_CHECKING = False  # hooks load this, and `typing` takes longer than all of it
if TYPE_CHECKING:
    from harness_lib.agents.adapter import Host

# They use the usual answers, so a hook need not look them up. A line here is only for speed.
USUAL = frozenset(("claude", "codex"))


def hooks(name: str) -> Host | None:
    """Return the hooks of the agent `name` without loading the other agents, None if it has none."""
    from importlib import import_module  # noqa: PLC0415 (most hooks ask for none)

    if not name.isidentifier():
        return None
    try:
        found: Host | None = getattr(import_module(f"{__name__}.{name}"), "HOOKS", None)
    except ModuleNotFoundError:
        return None
    return found
