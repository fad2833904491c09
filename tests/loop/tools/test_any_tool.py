"""What holds for a tool whatever it does: its name, and how much of the context it may take."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.loop import discovery
from harness_lib.loop.plugins import Result
from harness_lib.loop.runtime import Runtime
from tests.loop.tools.conftest import Do


@pytest.mark.parametrize("name", ["nope", "../bash", "a/b", "", "x\0y", "a\nb"])
def test_a_tool_that_there_is_not_is_an_error_for_the_model(do: Do, name: str) -> None:
    assert do(name) == Result(f"error: tool '{name}' not found", error=True)


def test_a_result_may_take_a_tenth_of_the_models_context(do: Do, run: Runtime, home: Path) -> None:
    (home / ".harness").mkdir(exist_ok=True)
    (home / ".harness" / "models.conf").write_text("small context=10000\n", encoding="utf-8")
    discovery.refresh(run)
    run.env["HARNESS_MODEL"] = "small-1"

    fits, exceeds = do("bash", command="printf %4000d 1"), do("bash", command="printf %4001d 1")

    assert len(fits.text) == 4000
    assert "4001 bytes in all, all of it in" in exceeds.text
    assert len(exceeds.text) < 4500
