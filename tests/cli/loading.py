"""See which modules a verb loads."""

from __future__ import annotations

import os
from pathlib import Path

from harness_lib.system.install import launcher
from tests.run_to_end import run_to_end


def executed(place: Path, *argv: str, code: int = 0, **env: str) -> set[str]:
    """Return the modules whose code a process has run that was typed as `argv` in `place` and exits `code`.

    It is what an installed `harness` becomes.
    As a process of its own it meets modules that wait; here they would wait in every later test, too.
    """
    *python, program = launcher.harness()
    watch = (
        "import os, sys, types; "
        "plain = lambda: [n for n, m in sys.modules.items() if type(m) is types.ModuleType]; "
        "os._exit = lambda code: sys.exit(print(*plain()) or code)"
    )
    done = run_to_end(
        [*python, f"{watch}; {program}", *argv],
        cwd=place,
        env={**os.environ, "CLAUDECODE": "1", **env},
    )
    assert done.returncode == code, done.stderr
    return set(done.stdout.splitlines()[-1].split())
