"""Projects, as the tests of the verbs have them."""

from __future__ import annotations

from tests.verbs.conftest import agent, asked_once, make_project, project, with_git

__all__ = ["agent", "asked_once", "make_project", "project", "with_git"]
