"""Where a host's hooks lie on this machine: in the home, where its variable says, or in the project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from harness_lib.agents.adapter import Host, Scope


def places(host: Host, scope: Scope, env: Mapping[str, str], project: Path) -> list[Path]:
    """Return the files of `scope`, the one that is written to first."""
    names = host.files.get(scope, ())
    if scope == "project":
        return [project / name for name in names]
    variable, folder = host.home or ("", "")
    moved = env.get(variable) if variable else None
    home = Path(env.get("HOME") or Path.home())
    return [
        Path(moved) / Path(name).relative_to(folder) if moved and Path(moved).is_absolute() else home / name
        for name in names
    ]
