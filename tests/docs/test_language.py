"""The words of pages, docstrings, comments and messages: shapes that readers had to decode stay out."""

from __future__ import annotations

import re

from tests.conftest import CHECKOUT

# `there is none` and `is none of` a list are English; "a schema that is none" for an invalid one is not.
GONE = re.compile(
    r"(?<![Tt]here )\b(?:is|are) none\b|\b[Ww]ho types\b|\bto be had\b|\bstands? in it\b|\bbe anybody\b(?!')"
    r"|\bbe it\b|\bwhat of\b|\bcheck (?:says|said) no\b|\b[Ss]omebody else\b"
    r"|\b(?:anybody|nobody)'s\b|\btake[sn]? (?:\w+ )?away\b"
)
READ = [
    *CHECKOUT.glob("*.md"),
    *(path for room in ("docs", "references") for path in (CHECKOUT / room).glob("*.md")),
    *(path for room in ("harness_lib", "hooks") for path in (CHECKOUT / room).rglob("*.py")),
]


def test_nothing_is_said_in_a_shape_that_has_to_be_decoded() -> None:
    found = [
        f"{path.relative_to(CHECKOUT)}: {match[0]}"
        for path in READ
        for match in GONE.finditer(path.read_text())
    ]

    assert len(READ) > 100
    assert found == []
