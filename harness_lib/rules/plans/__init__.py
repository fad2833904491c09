"""Plans of other tools: which there are, and which one a text is.

A new format is a reader here, followed by its `Format`, and a word in FORMATS.
"""

from __future__ import annotations

from harness_lib.rules.plans import from_json, gsd, markdown, spec_kit
from harness_lib.rules.plans.plan import Document, Format, Plan

# The first that reads a text has it: the marks of the earlier ones are the rarer ones.
FORMATS = (
    *(gsd.FORMAT, spec_kit.FORMAT, markdown.SUPERPOWERS, markdown.OPENSPEC),
    *(from_json.TASK_MASTER, from_json.GITHUB),
)


def recognised(text: str) -> tuple[Format, Plan] | None:
    """Return the first format that reads `text`, and the plan; None if none of them does."""
    doc = Document(text)
    for form in FORMATS:
        if form.sign.search(doc.text) and (plan := form.read(doc)):
            return form, plan
    return None
