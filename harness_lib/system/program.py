"""How to start this program again as a child, whether a checkout, a package or the launcher started it."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

_HOME = Path(__file__).resolve().parents[2]


def python(code: str) -> list[str]:
    """Return the command that runs `code` with this interpreter, isolated, and this package importable."""
    setting = ["-X", f"pycache_prefix={sys.pycache_prefix}"] if sys.pycache_prefix else []
    paths = [str(path) for path in (_HOME, _packages()) if path]
    return [sys.executable, *setting, "-I", "-c", f"import sys; sys.path += {paths!r}; {code}"]


def harness() -> list[str]:
    """Return the command `harness`."""
    return python("from harness_lib.cli.main import entry; entry()")


def _packages() -> Path | None:
    """Return where our dependencies are: no interpreter has the launcher's private ones on its own path."""
    spec = find_spec("jsonschema")
    return Path(spec.origin).parents[1] if spec and spec.origin else None
