"""Where this program lies: the checkout or skill folder around the package, and the launcher in it.

An installed package has no launcher there. Hooks load this, so it needs what is loaded already, and no more.
"""

from __future__ import annotations

import os

# Around the package: what stands there is ours in a checkout, and others' where it was installed.
HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))
LAUNCHER = os.path.join(HOME, "bin", "harness")


def launcher() -> str | None:
    """Return the absolute path of `bin/harness`; None if there is none beside the package."""
    return LAUNCHER if os.path.isfile(LAUNCHER) else None
