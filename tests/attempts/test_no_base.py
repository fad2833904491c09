"""An attempt needs a commit that it can go back to: without one, what is wrong with the branch is said."""

from __future__ import annotations

import pytest

from harness_lib.attempts import target_branch
from harness_lib.errors import EnvSetupError
from harness_lib.system.git.repository import Git
from tests.verbs.project import Agent, Project


@pytest.mark.parametrize(
    ("broken", "said", "typed"),
    [
        (
            ("symbolic-ref", "HEAD", "refs/heads/empty"),
            "The branch empty of {top} has no commit; there are others, main for one.",
            "git switch main",
        ),
        (
            ("update-ref", "-d", "refs/heads/main"),
            "The branch main is gone; it stood at {head}.",
            "git branch main {head}",
        ),
    ],
    ids=["never had one", "is gone"],
)
def test_a_branch_without_a_commit_is_named_with_its_cure(
    project: Project, agent: Agent, broken: tuple[str, ...], said: str, typed: str
) -> None:
    agent.ok("add", "One", "--validate", "test -f done")
    head = project.head
    project.git(*broken)

    refused = agent("claim")

    assert refused.code == 7
    assert said.format(top=project.top, head=head[:12]) in refused.err
    cure = typed.format(head=head)
    assert cure in refused.err
    project.git(*cure.split()[1:])
    agent.ok("claim")


@pytest.mark.parametrize(
    ("broken", "said", "typed"),
    [
        (
            ("branch", "-m", "main", "trunk"),
            "The branch main is called trunk now, and there is work for main.",
            "git branch -m trunk main",
        ),
        (
            ("branch", "-D", "main"),
            "The branch main is gone, and there is work for it.",
            "git branch main COMMIT",
        ),
    ],
    ids=["renamed", "deleted"],
)
def test_a_branch_that_work_is_for_is_named_with_its_cure_although_another_one_is_checked_out(
    project: Project, broken: tuple[str, ...], said: str, typed: str
) -> None:
    """The user did it while a run was at work: to go to another branch would help nobody."""
    project.git("checkout", "-q", "-b", "other")
    head = project.head
    project.git(*broken)
    git = Git.open(project.top)

    with pytest.raises(EnvSetupError) as caught:
        target_branch.tip(git, "refs/heads/main")

    assert caught.value.message == said
    assert typed in (caught.value.hint or "")
    project.git(*typed.replace("COMMIT", head).split()[1:])
    assert target_branch.tip(git, "refs/heads/main") == head
