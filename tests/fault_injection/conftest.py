"""The same projects as the tests of the verbs have."""

from __future__ import annotations

from tests.verbs.conftest import agent, make_project, one, project

__all__ = ["agent", "make_project", "one", "project"]
