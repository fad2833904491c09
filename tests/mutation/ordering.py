"""A plugin of pytest: run the tests that a file names, in its order, and no others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest  # noqa: TC002 (as in every other file of tests)

ORDER = "MUTANT_TESTS"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests that the file in the environment names."""
    known = {item.nodeid: item for item in items}
    named = Path(os.environ[ORDER]).read_text().splitlines()
    items[:] = [known[name] for name in named if name in known]
