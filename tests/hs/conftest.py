"""What the tests of `hs` share with those of its loop: a model server, and `hs` as its users start it."""

from __future__ import annotations

from tests.hs.acp.client import editor, pytest_pyfunc_call
from tests.loop.conftest import conversation, done, go, hs, project, serve, served, started, wire

__all__ = ["conversation", "done", "editor", "go", "hs", "project", "serve", "served", "started"]
__all__ += ["pytest_pyfunc_call", "wire"]
