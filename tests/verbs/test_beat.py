"""`harness beat` renews the lease of what a worker holds, and nothing else."""

from __future__ import annotations

from tests.verbs.conftest import Make
from tests.verbs.project import Project

LONG_AGO = "2020-01-01T00:00:00Z"


def shared(make_project: Make) -> Project:
    project = make_project(mode="concurrent")
    project.agent("person").ok("add", "One", "--validate", "true")
    project.agent("holder").ok("claim")
    project.edit_task(lease_expires_at=LONG_AGO)
    return project


def test_the_holder_renews_its_lease(make_project: Make) -> None:
    project = shared(make_project)

    reply = project.agent("holder").ok("beat")

    assert reply["message"] == "renewed: task-001"
    assert project.task()["lease_expires_at"] > LONG_AGO


def test_nobody_else_does(make_project: Make) -> None:
    project = shared(make_project)

    reply = project.agent("other").ok("beat")

    assert reply["next"] == "harness status"
    assert project.task()["lease_expires_at"] == LONG_AGO


def test_a_claim_without_a_lease_stays_without_one(project: Project) -> None:
    project.agent("person").ok("add", "One", "--validate", "true")
    agent = project.agent()
    agent.ok("claim")
    before = project.file.read_bytes()

    agent.ok("beat")

    assert project.file.read_bytes() == before
