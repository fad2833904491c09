"""Hooks are rung here as in their own tests."""

from tests.hookio.conftest import hook, ring

__all__ = ["hook", "ring"]
