"""The environment that this process was started with, where every process of this user can read it.

`/proc/PID/environ` shows the memory that the kernel has filled at the start, whatever has become of a
variable since. Our own copies of the variables lie elsewhere, and stay.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

_STAT, _MEMORY = Path("/proc/self/stat"), Path("/proc/self/mem")
# Fields of /proc/PID/stat behind the name, counted from 0: proc(5) numbers them 3, 50 and 51.
_ENV_START, _ENV_END = 47, 48


def blank(names: Collection[str]) -> bool:
    """Overwrite the values of the variables `names` there; return whether this system lets us."""
    try:
        fields = _STAT.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        at, end = int(fields[_ENV_START]), int(fields[_ENV_END])
        with _MEMORY.open("r+b", buffering=0) as memory:
            memory.seek(at)
            for entry in memory.read(end - at).split(b"\0"):
                name, _, value = entry.partition(b"=")
                if os.fsdecode(name) in names:
                    memory.seek(at + len(name) + 1)
                    memory.write(bytes(len(value)))
                at += len(entry) + 1
    except OSError:
        return False
    return True
