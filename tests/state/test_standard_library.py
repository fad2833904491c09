"""What hooks read the list with needs nothing but the standard library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); import harness_lib.state.{name}; print(*sys.modules)"


def loaded(name: str) -> set[str]:
    """Return what is loaded after importing a room of ours the way a hook does."""
    command = [sys.executable, "-I", "-S", "-c", PROGRAM.format(name=name), str(REPOSITORY)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("name", ["codec", "load", "journal", "summary"])
def test_reading_needs_the_standard_library_only(name: str) -> None:
    ours = {module for module in loaded(name) if module.partition(".")[0] == "harness_lib"}

    assert f"harness_lib.state.{name}" in ours


def test_a_summary_is_read_without_the_rules_and_the_codec() -> None:
    assert loaded("summary") & {"harness_lib.rules.selection", "harness_lib.state.codec"} == set()
