"""A check that cannot fail is told from one that can."""

from __future__ import annotations

import pytest

from harness_lib.rules import vacuous


def _has(text: str, file: str) -> bool:
    return (text, file) == ("def login", "auth.py")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("true", "`true` never fails"),
        (":", "never fails"),
        ("echo ok", "`echo` never fails"),
        ("pytest -q || true", "ends with `true`"),
        ("pytest -q || echo failed", "ends with `echo failed`"),
        ("pytest; exit 0", "ends with `exit 0`"),
        ("pytest -q\ntrue\n", "ends with `true`"),
        ("pytest -q | tee log", "`tee` does not fail"),
        ("grep -q 'def login' auth.py", "auth.py has 'def login' already"),
    ],
)
def test_a_check_that_cannot_fail_is_named_with_its_reason(command: str, words: str) -> None:
    assert words in (vacuous.why(command, _has) or "")


@pytest.mark.parametrize(
    "command",
    [
        "",
        "pytest -q",
        "pytest -q && true",
        "test -f a && echo ok",
        "set -o pipefail; pytest | tee log",
        "pytest | grep -q passed",
        "true && pytest",
        "grep -q other auth.py",
        "grep -qv 'def login' auth.py",
        "grep -q 'def login' other.py",
        "ls 'unclosed",
        "(true; pytest)",
        "! true",
    ],
)
def test_one_that_can_fail_is_not(command: str) -> None:
    assert vacuous.why(command, _has) is None
