"""See which modules a verb loads."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.run_to_end import run_to_end


def executed(place: Path, *argv: str, code: int = 0, **env: str) -> set[str]:
    """Return the modules whose code a process has run that was typed as `argv` in `place` and exits `code`.

    As a process of its own it meets modules that wait; here they would wait in every later test, too.
    """
    program = (
        "import os, sys, types; from harness_lib.cli import lazily; lazily.install(sys.argv[1:]); "
        "from harness_lib.cli.main import entry; "
        "plain = lambda: [n for n, m in sys.modules.items() if type(m) is types.ModuleType]; "
        "os._exit = lambda code: sys.exit(print(*plain()) or code); entry()"
    )
    done = run_to_end(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path += {sys.path!r}; {program}", *argv],
        cwd=place,
        env={**os.environ, "CLAUDECODE": "1", **env},
    )
    assert done.returncode == code, done.stderr
    return set(done.stdout.splitlines()[-1].split())
