"""Plans of other tools: which there are, and which one a text is.

A new format is a file here that ends with its `Format`, and a line in MARKDOWN or JSON.
"""

from __future__ import annotations

from harness_lib.rules.plans import from_json, gsd, openspec, spec_kit, superpowers
from harness_lib.rules.plans.plan import Document, Format, Plan

# The first that reads a text has it: the marks of the earlier ones are the rarer ones.
MARKDOWN = (gsd.FORMAT, spec_kit.FORMAT, superpowers.FORMAT, openspec.FORMAT)
JSON = (from_json.TASK_MASTER, from_json.GITHUB)
FORMATS = (*MARKDOWN, *JSON)


def recognised(text: str, formats: tuple[Format, ...] = FORMATS) -> tuple[Format, Plan] | None:
    """Return the first of `formats` that reads `text`, and the plan; None if none of them does."""
    doc = Document(text)
    for form in formats:
        if form.sign.search(doc.text) and (plan := form.read(doc)) is not None:
            return form, plan
    return None
