"""Projects and homes on a disk: a sandbox has a `/dev` of its own, and with it another `/dev/shm`."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@pytest.fixture(scope="session")
def tmp_path_factory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pytest.TempPathFactory]:
    """Yield one that makes its directories where temporary files are."""
    with TemporaryDirectory(prefix="sandbox-", ignore_cleanup_errors=True) as place:
        on_disk = copy.copy(tmp_path_factory)
        on_disk._basetemp = Path(place).resolve()
        yield on_disk
