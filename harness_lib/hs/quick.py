"""`hs version` without the rest of hs: scripts and package managers ask for it, and are answered at once.

With the standard library's smallest parts, because importing the others takes longer than the answer.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # importing it from `typing` costs more than all of this
if TYPE_CHECKING:
    from collections.abc import Mapping

_ASKED = (["version"], ["--version"], ["-v"])
# What of a source may bring another command of that name along.
_SUSPECTS = ("commands/version", "hooks.d/sources", "plugins")


def version(args: list[str], env: Mapping[str, str]) -> bool:
    """Print the version if nothing else was asked for; return whether that was so.

    Where a plugin may have taken its place, all of hs has to look.
    """
    if args not in _ASKED or env.get("HARNESS_ROOT") or not env.get("HOME"):
        return False
    try:
        directory = os.getcwd()
    except FileNotFoundError:
        return False
    sources = [env.get("HARNESS_HOME") or os.path.join(env["HOME"], ".harness")]
    while True:
        sources.append(os.path.join(directory, ".harness"))
        directory, above = os.path.dirname(directory), directory
        if directory == above:
            break
    if any(os.path.exists(os.path.join(source, name)) for source in sources for name in _SUSPECTS):
        return False
    import harness_lib  # noqa: PLC0415 (only where it is asked for)

    print(f"harness {harness_lib.__version__}")
    return True
