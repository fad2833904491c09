"""`harness` as a package manager installs it, and `python -m harness_lib`."""

import gc
import os
import sys


def installed() -> None:
    """Replace this process by `harness`, started as the launcher of a checkout starts it.

    This process was found by PYTHONPATH and by the machine's `site`, which may name anything.
    """
    from harness_lib.system.install import launcher  # noqa: PLC0415 (only here)

    command = launcher.harness()
    os.execv(command[0], [*command, *sys.argv[1:]])  # noqa: S606 (no shell is wanted)


def begin() -> None:
    """Run `harness` in this process, and load a module when its verb first uses it."""
    # A verb ends before a collection of garbage would pay.
    gc.disable()
    from harness_lib.cli import lazily  # noqa: PLC0415 (the garbage collector is off by now)

    lazily.install(sys.argv[1:])
    from harness_lib.cli.main import entry  # noqa: PLC0415 (what it imports may wait)

    entry()


if __name__ == "__main__":
    begin()
