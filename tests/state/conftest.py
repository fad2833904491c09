"""Lists to test with: the example files, a root on disk, and states that hypothesis makes up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness_lib.state.store import Store
from harness_lib.system.place.roots import Root
from tests.state.clock import made_at_noon

EXAMPLES = Path(__file__).parents[1] / "schemas"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test that asks for `valid_file` or `invalid_file` every such file as a case of its own."""
    for name in ("valid", "invalid"):
        if f"{name}_file" in metafunc.fixturenames:
            files = sorted((EXAMPLES / name).glob("*.json"))
            assert files, f"no {name} examples found"
            metafunc.parametrize(f"{name}_file", files, ids=[file.stem for file in files])


@pytest.fixture
def valid(valid_file: Path) -> Any:
    """Return the document of an example that keeps the contract."""
    return json.loads(valid_file.read_bytes())


@pytest.fixture
def invalid(invalid_file: Path) -> tuple[str, Any]:
    """Return (path of the problem, document) of an example that breaks the contract."""
    case = json.loads(invalid_file.read_bytes())
    return case["expect"], case["document"]


@pytest.fixture
def root(tmp_path: Path) -> Root:
    """Return an empty state root."""
    return Root(tmp_path.resolve())


@pytest.fixture
def store(root: Root) -> Store:
    """Return the store of a list with three tasks, made at noon."""
    return made_at_noon(root)
