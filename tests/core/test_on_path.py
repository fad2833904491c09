"""Who has just cloned us is told what to type where `harness` is not on the PATH."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness_lib.terminal import render
from tests.core.search_paths import without_harness
from tests.terminal.pseudo_terminal import shown

if TYPE_CHECKING:
    from tests.conftest import Harness

LAUNCHER = shlex.quote(str(Path(__file__).parents[2] / "bin" / "harness"))


def test_what_is_to_be_typed_in_its_place_is_our_launcher(harness: Harness) -> None:
    said = harness(env={"PATH": without_harness()}).out
    told = said.partition("`harness` is not on your PATH: type ")[2].partition(" in its place")[0]
    assert Path(shlex.split(told)[0]).samefile(Path(__file__).parents[2] / "bin" / "harness")


def test_on_a_terminal_each_command_that_is_shown_can_be_typed(repo: Path) -> None:
    """After `skills add` alone there is no `harness` on the PATH."""
    elsewhere = {"PATH": without_harness(), "HARNESS_WORKER_ID": "one"}

    assert f"next: {LAUNCHER} add " in shown(repo, "init", **elsewhere)
    said = shown(repo, "add", "One", **elsewhere)
    assert f"Give it one: {LAUNCHER} edit task-001 --validate 'COMMAND'" in said
    assert f"Did you mean: {LAUNCHER} status" in shown(repo, "statsu", **elsewhere)
    assert "next: harness start" in shown(repo, "add", "Two")


@pytest.mark.usefixtures("repo")
def test_what_an_agent_asks_of_its_user_can_be_typed(harness: Harness) -> None:
    for words in (("init",), ("add", "One"), ("claim",)):
        assert harness(*words, env={"HARNESS_WORKER_ID": "one"}).code == 0
    env = {"PATH": without_harness(), "HARNESS_WORKER_ID": "one"}

    said = harness("finish", env=env)

    assert f"in a terminal: {LAUNCHER} edit task-001" in said.err


def test_where_it_is_found_nothing_is_said(tmp_path: Path) -> None:
    program = tmp_path / "harness"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    assert render.advice(str(tmp_path)) is None
