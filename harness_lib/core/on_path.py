"""What is said to who has just cloned us and finds `harness` in what we print, but not on the PATH."""

from __future__ import annotations

from harness_lib import typed
from harness_lib.system.place import checkout
from harness_lib.system.processes import search_path


def advice(path: str) -> str | None:
    """Return what to type in the place of `harness`; None where `path` (as in PATH) has one."""
    launcher = checkout.launcher()
    if launcher is None or search_path.find("harness", path):
        return None
    link = f"ln -s {typed.word(launcher)} ~/.local/bin/harness"
    return f"`harness` is not on your PATH: type {typed.word(launcher)} in its place, or once: {link}"
