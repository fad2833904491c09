"""Hooks are rung here as in their own tests."""

from tests.hookio.conftest import ring

__all__ = ["ring"]
