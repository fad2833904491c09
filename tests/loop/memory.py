"""How much memory `hs` takes: what is put before it tells, in a last line, its kilobytes at most."""

from __future__ import annotations

import sys

_PROGRAM = (
    "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:], check=False); "
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(done.returncode)"
)
MEASURED = (sys.executable, "-c", _PROGRAM)
