"""A link that leads out of the repository is committed, and the user is told to look at it."""

from __future__ import annotations

from tests.verbs.project import Agent, Project, begin

LINKS = {
    "data": "/etc",
    "deep/up": "../../beside",
    "parent": "..",
    "hooks": ".git/hooks",
    "deep/own": "../tracked.txt",
    "near": "./deep/../tracked.txt",
}


def test_a_link_that_leads_out_of_the_repository_is_to_be_looked_at(project: Project, agent: Agent) -> None:
    (project.top / "old").symlink_to("/usr")
    project.commit("A link of before")
    begin(agent, "true")
    (project.top / "deep").mkdir()
    for name, target in LINKS.items():
        (project.top / name).symlink_to(target)

    agent.ok("finish")

    said = [line.partition(" (git show ")[0] for line in project.task()["look_at"]]
    leads = "leads out of the repository, to"
    assert said == [
        f"task-001: the link 'data' {leads} '/etc'",
        f"task-001: the link 'deep/up' {leads} '../../beside'",
        f"task-001: the link 'hooks' {leads} '.git/hooks'",
        f"task-001: the link 'parent' {leads} '..'",
    ]
    assert set(LINKS) < set(project.in_commit())
