"""`harness-init.sh`: the optional set-up and health check."""

from __future__ import annotations

import os

from harness_lib.core.context import Context
from harness_lib.system.processes import runner

TIMEOUT_SECONDS = 600.0


def exists(ctx: Context) -> bool:
    """Return whether the project has the script."""
    return ctx.root.init_script.is_file()


def run_once(ctx: Context) -> runner.Finished:
    """Run the script in the caller's work tree; the list must be trusted."""
    import shlex  # noqa: PLC0415 (every start loads this file, and few projects have a script)

    script = ctx.root.init_script
    quoted = shlex.quote(str(script))
    return runner.run(
        quoted if os.access(script, os.X_OK) else f"sh {quoted}",
        cwd=ctx.git.top,
        log=ctx.root.logs / "harness-init.log",
        timeout=TIMEOUT_SECONDS,
        env=ctx.env,
        clock=ctx.clock,
    )


def prepare(ctx: Context) -> runner.Finished | None:
    """Run the script, and once more if it fails; None where there is none.

    Source: docs/protocol.md, "Error Handling".
    """
    if not exists(ctx):
        return None
    ctx.busy(f"running {ctx.root.init_script.name} …")
    first = run_once(ctx)
    return first if first.ok else run_once(ctx)
