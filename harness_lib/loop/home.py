"""Files that hs keeps in its home for later: without them it works, only slower or with less company."""

from __future__ import annotations

from pathlib import Path

from harness_lib.loop.runtime import Runtime
from harness_lib.system.files import atomic

_PRIVATE, _PRIVATE_DIRECTORY = 0o600, 0o700


def keep(runtime: Runtime, path: Path, data: bytes) -> None:
    """Write `path`; a home that cannot be written is said once, and ends nothing."""
    try:
        path.parent.mkdir(mode=_PRIVATE_DIRECTORY, parents=True, exist_ok=True)
        atomic.write(path, data, durable=False, mode=_PRIVATE)
    except OSError as error:
        reported: set[Path] = runtime.kept.setdefault("not kept", set())
        if path not in reported:
            reported.add(path)
            runtime.log(f"hs: {path} cannot be written ({error.strerror}); hs goes on without it.")
