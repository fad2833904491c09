"""The note about a change whose fate is not known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness_lib.state.pgstore.store import Doubt
from harness_lib.system.place.roots import Root

NAME = "1234abcd" * 4
WRITTEN = "1234abcd-1234-abcd-1234-abcd1234abcd"


@pytest.mark.parametrize(
    ("noted", "op"),
    [(NAME, NAME), (WRITTEN, NAME), ("1234", None), ("'; drop", None), (7, None), (None, None)],
)
def test_a_note_of_any_version_names_its_change_and_rubbish_names_none(
    tmp_path: Path, noted: object, op: str | None
) -> None:
    root = Root(tmp_path)
    root.private.mkdir()
    (root.private / "store-doubt.json").write_text(json.dumps({"op": noted, "pid": 1}))

    assert Doubt(root).op == op
