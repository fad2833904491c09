"""Who has just cloned us is told what to type where `harness` is not on the PATH."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from harness_lib.terminal import render
from tests.core.search_paths import without_harness

if TYPE_CHECKING:
    from tests.conftest import Harness


def test_what_is_to_be_typed_in_its_place_is_our_launcher(harness: Harness) -> None:
    said = harness(env={"PATH": without_harness()}).out
    told = said.partition("`harness` is not on your PATH: type ")[2].partition(" in its place")[0]
    assert Path(shlex.split(told)[0]).samefile(Path(__file__).parents[2] / "bin" / "harness")


def test_where_it_is_found_nothing_is_said(tmp_path: Path) -> None:
    program = tmp_path / "harness"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    assert render.advice(str(tmp_path)) is None
