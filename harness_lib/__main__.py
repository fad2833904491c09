"""`harness` as a package manager installs it, and `python -m harness_lib`."""

import os
import sys

from harness_lib.system.install import launcher


def installed() -> None:
    """Become `harness`, started as the launcher of a checkout starts it.

    Who calls this was found by PYTHONPATH and by the machine's `site`, which may name anything.
    """
    command = launcher.harness()
    os.execv(command[0], [*command, *sys.argv[1:]])  # noqa: S606 (no shell is wanted)


if __name__ == "__main__":
    from harness_lib.cli import lazily

    lazily.install(sys.argv[1:])
    from harness_lib.cli.main import entry

    entry()
