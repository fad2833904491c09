"""Projects as the tests of the verbs have them, for agents that type in one."""

from __future__ import annotations

from tests.verbs.conftest import make_project, project

__all__ = ["make_project", "project"]
