"""Start `hs` as a package manager installs it, or as `python -m harness_lib.hs`; answer `hs version` at once.

Scripts and package managers ask for the version, so it is answered with the smallest parts of the standard
library: importing the others takes longer than the answer.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # importing it from `typing` costs more than all of this
if TYPE_CHECKING:
    from collections.abc import Mapping

# What of a source may bring another command of that name along.
_SUSPECTS = ("commands/version", "hooks.d/sources", "plugins")


def version(env: Mapping[str, str]) -> bool:
    """Print the version; where a plugin may have taken its place, return False: all of hs has to look."""
    if env.get("HARNESS_ROOT") or not env.get("HOME"):
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


def installed() -> None:
    """Become `hs`, started as the launcher of a checkout starts it: isolated from what the machine has."""
    from harness_lib.system.install import launcher  # noqa: PLC0415 (the version needs none of it)

    command = launcher.hs()
    os.execv(command[0], [*command, *sys.argv[1:]])  # noqa: S606 (no shell is wanted)


if __name__ == "__main__":
    from harness_lib.hs.main import entry

    entry()
