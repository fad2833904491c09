"""What hooks.json lets a host run at each event."""

from __future__ import annotations

import json
from typing import Any

from tests.hookio.conftest import HOOKS

CONFIG: dict[str, Any] = json.loads((HOOKS / "hooks.json").read_text())


def commands() -> dict[str, str]:
    """Return the command of each event."""
    by_event = {}
    for event, groups in CONFIG["hooks"].items():
        ((entry,),) = (group["hooks"] for group in groups)
        assert entry["type"] == "command"
        # Codex gives the end of a session three seconds, and warns at each start of a longer time.
        assert entry["timeout"] == (3 if event == "SessionEnd" else 10)
        by_event[event] = entry["command"]
    return by_event
