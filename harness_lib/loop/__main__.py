"""`python -m harness_lib.loop`: the command `hs`."""

from __future__ import annotations

import sys

from harness_lib.loop.main import entry

sys.exit(entry())
