"""hs, our own agent, as `harness doctor` looks at it: in a process of its own, where it is in use."""

from __future__ import annotations

import json

from harness_lib.core.context import Context
from harness_lib.doctor.diagnosis import Diagnoses, ok, warn
from harness_lib.system.install import launcher
from harness_lib.system.processes import child

_SECONDS = 60.0


def examine(ctx: Context) -> Diagnoses:
    """Say whether hs has its packages and a provider, which plugins are broken, and who can read its keys."""
    place = launcher.beside("hs")
    if place is None or not launcher.has_packages(ctx.env):
        yield ok("hs: not in use yet; its first call fetches its packages")
        return
    answer = _ask(place, ctx)
    if answer is None:
        yield warn("hs cannot be asked how it is", f"{place} doctor")
        return
    for each in answer:
        finding, cure = f"hs: {each.get('what')}", str(each.get("cure") or "")
        if cure and each.get("about") != "provider":
            yield warn(finding, cure)
        else:
            # Who has another agent needs no provider.
            yield ok(finding)


def _ask(place: str, ctx: Context) -> list[dict[str, object]] | None:
    try:
        env = {**ctx.env, "HARNESS_LOG": "/dev/null"}
        answer = json.loads(
            child.ask([place, "doctor", "--json"], env=env, cwd=ctx.cwd, seconds=_SECONDS).output
        )
    except (OSError, ValueError):
        return None
    return [each for each in answer if isinstance(each, dict)] if isinstance(answer, list) else None
