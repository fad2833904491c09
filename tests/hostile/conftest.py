"""Hooks are rung here as in their own tests."""

from tests.hooks.conftest import ring

__all__ = ["ring"]
