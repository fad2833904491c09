"""What the tests of `hs` share with those of its loop: a model server, and `hs` as its users start it."""

from __future__ import annotations

from tests.hs.acp.client import pytest_pyfunc_call
from tests.loop.conftest import conversation, done, go, hs, project, serve, served, wire

__all__ = ["conversation", "done", "go", "hs", "project", "pytest_pyfunc_call", "serve", "served", "wire"]
