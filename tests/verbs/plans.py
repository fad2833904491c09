"""A plan of another tool with two tasks, and how a test writes one and reads what came of it."""

from __future__ import annotations

from typing import Any

from tests.verbs.project import Project

PLAN = """# Greeting Implementation Plan

**Goal:** Greet.

### Task 1: Say hello

- [ ] **Step 1: Make it pass**

Run: `grep -q hello a.txt`
Expected: PASS

- [ ] **Step 2: Commit**

### Task 2: Say why

- [ ] **Step 1: Write the page**
"""
SCRIPT = {"HARNESS_TRUST": "1"}


def put(project: Project, name: str, text: str | bytes) -> str:
    project.put(name, text)
    return name


def tasks(project: Project) -> list[dict[str, Any]]:
    return list(project.state["tasks"])
