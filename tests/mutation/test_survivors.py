"""The reasons for mutants that survive are about code that is there, and every one is a reason."""

from __future__ import annotations

import inspect
import json
import pkgutil
from typing import Any

import pytest

from tests.mutation.mutants import Mutant
from tests.mutation.survivors import FILE, Reasons

DOCUMENT: dict[str, Any] = json.loads(FILE.read_bytes())


@pytest.mark.parametrize("name", DOCUMENT["functions"])
def test_every_line_that_may_be_broken_stands_in_its_function(name: str) -> None:
    function: Any = pkgutil.resolve_name(name)

    source = " ".join(inspect.getsource(inspect.unwrap(function)).split())

    for entry in DOCUMENT["functions"][name]:
        assert " ".join(entry["was"].split()) in source
        assert set(entry) <= {"was", "became", "why"}
        assert len(entry["why"]) > len("equivalent")


def test_a_general_reason_is_about_a_change_and_says_why() -> None:
    for entry in DOCUMENT["anywhere"]:
        assert set(entry) == {"change", "why"}
        assert " => " in entry["change"]
        assert len(entry["why"]) > len("equivalent")


def test_a_reason_is_for_its_own_function_and_change_only() -> None:
    entries = [{"was": "a = 1", "became": "a = 2", "why": "b"}, {"was": "c = 1", "why": "d"}]
    reasons = Reasons(
        {"anywhere": [{"change": "utf-8.* => .*UTF-8", "why": "e"}], "functions": {"m.f": entries}}
    )

    def why(function: str, was: str, became: str) -> str | None:
        return reasons.why(Mutant("", function, was, became, ""))

    assert why("m.f", "a = 1", "a = 2") == "b"
    assert why("m.f", "a = 1", "a = 3") is None
    assert why("m.f", "c = 1", "c = None") == "d"
    assert why("m.g", "a = 1", "a = 2") is None
    assert why("m.g", 'encode("utf-8")', 'encode("UTF-8")') == "e"
