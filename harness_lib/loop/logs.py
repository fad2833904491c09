"""Logs: what tools and hooks have said, for their owner alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO


def appending(path: str | Path) -> IO[bytes]:
    """Open the log `path` to append to it; nobody else can read one that is made here. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "ab")
