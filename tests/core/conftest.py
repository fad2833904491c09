"""Projects, as the tests of the verbs have them."""

from __future__ import annotations

from tests.verbs.conftest import agent, make_project, one, project, with_git

__all__ = ["agent", "make_project", "one", "project", "with_git"]
