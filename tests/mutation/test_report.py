"""The table of a sample compares it with an earlier one, whichever file of that is named."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.mutation import mutants, report
from tests.mutation.mutants import Mutant

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

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
