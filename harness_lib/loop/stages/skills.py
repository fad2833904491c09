"""The stage `assemble`, last: which skills there are."""

from __future__ import annotations

from harness_lib.loop.piped import Piped, as_object
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.tools import skills

_HEAD = (
    "These skills hold instructions for particular work. "
    "When a task matches a description, load the skill by the tool `skill` before you begin."
)


def catalogue(runtime: Runtime, piped: Piped) -> Piped:
    """Append the catalogue of skills to `system`."""
    payload = as_object(piped) or {}
    available = skills.every(runtime)
    if not available:
        return payload
    lines = [
        f'<skill name="{skill.name}" path="{skill.path}">\n{skill.description}\n</skill>'
        for skill in available.values()
    ]
    text = "\n".join([_HEAD, "", "<available-skills>", *lines, "</available-skills>"])
    return {**payload, "system": "\n\n".join(part for part in (payload.get("system"), text) if part)}
