"""Mutants are tried with tests that are there: pytest passes over a deselected one that is not."""

from __future__ import annotations

import ast
import inspect
import json
import pkgutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.mutation import mutants, report
from tests.mutation.mutants import CHECKOUT, ROOMS, Mutant
from tests.mutation.rooms import TESTS
from tests.mutation.survivors import FILE, Reasons

DESELECT = "--deselect="
NAMED = [argument.removeprefix(DESELECT) for arguments in TESTS.values() for argument in arguments]


def test_every_room_has_tests() -> None:
    assert set(TESTS) == set(ROOMS)


@pytest.mark.parametrize("name", NAMED)
def test_what_is_named_is_there(name: str) -> None:
    place, _, test = name.partition("::")
    assert (CHECKOUT / place).exists()
    if test:
        tree = ast.parse((CHECKOUT / place).read_text())
        assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


# -- the table of a sample compares it with an earlier one, whichever file of that is named


ONE = Mutant("harness_lib.rules.graph.x_one__mutmut_1", "one", "a", "b", "1", "killed", key="one: a => b")
TWO = replace(ONE, name=ONE.name.replace("one", "two"), key="two: a => b")


def test_a_sample_is_compared_with_a_saved_one_or_with_a_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(mutants, "WORK", tmp_path)
    saved, memory = tmp_path / "saved.json", tmp_path / "before.json"
    mutants.remember(memory, [ONE, TWO])
    mutants.remember(tmp_path / "rules.json", [ONE, TWO])
    report.main(["rules", "--save", str(saved)])
    mutants.remember(tmp_path / "rules.json", [ONE, replace(TWO, fate="survived")])

    for file in (saved, memory):
        assert report.main(["rules", "--before", str(file)]) == 1
        assert f"survives now: {TWO.key}" in capsys.readouterr().out
    for text in (json.dumps([1]), "no JSON"):
        memory.write_text(text)
        assert report.main(["rules", "--before", str(memory)]) == 2
        assert f"--before {memory}: " in capsys.readouterr().err


def test_mutants_that_look_alike_have_keys_of_their_own() -> None:
    assert len({each.key for each in mutants.named([ONE, ONE, TWO])}) == 3


# -- the reasons for those that survive are about code that is there, and every one is a reason


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
