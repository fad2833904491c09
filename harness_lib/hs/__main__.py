"""`hs` as a package manager installs it, and `python -m harness_lib.hs`."""

from __future__ import annotations

import os
import sys

from harness_lib.system.install import launcher


def installed() -> None:
    """Become `hs`, started as the launcher of a checkout starts it: isolated from what the machine has."""
    command = launcher.hs()
    os.execv(command[0], [*command, *sys.argv[1:]])  # noqa: S606 (no shell is wanted)


if __name__ == "__main__":
    from harness_lib.hs.main import entry

    sys.exit(entry())
