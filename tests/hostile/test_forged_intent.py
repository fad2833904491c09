"""What a list says is under way is not done because a list says so: a clone can bring one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.run_to_end import run_to_end
from tests.verbs.project import Agent, Project, make

AT = "2025-07-01T10:00:00Z"
LOOKING_ON = (("start",), ("claim",), ("recover",), ("claim", "task-001"))


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """Return a repository with three commits, a branch beside, and a change that nobody has committed."""
    made = make(tmp_path / "repo", bare=True)
    for number in (1, 2):
        made.commit(f"Commit {number}", files={f"file{number}.txt": "x\n"})
    made.git("branch", "victim")
    made.git("checkout", "-q", "-b", "side")
    made.commit("Beside", files={"side.txt": "x\n"})
    made.git("checkout", "-q", "main")
    made.put("tracked.txt", "changed by the user\n")
    yield made
    made.close()


def _oid(project: Project, name: str) -> str:
    return project.git("rev-parse", name)


def _list(project: Project, action: str, *, began_at: str = "HEAD~2", **intent: Any) -> None:
    """Bring a list in which `action` is under way for a task that began there."""
    began = _oid(project, began_at)
    gate = {"command": "0" * 64, "branch": "refs/heads/main", **intent.pop("gate", {})}
    under_way = {"action": action, "at": AT, "base": began, "outcome": "failed", **intent}
    _bring(project, attempts=1, started_at_commit=began, gate=gate, intent=under_way)


def _bring(project: Project, **fields: Any) -> None:
    """Bring a list with one task, whose attempt goes on here."""
    task = {"id": "task-001", "status": "in_progress", "worktree": str(project.top)}
    project.write({**task, **fields}, sessions=[])


def _stands(project: Project) -> tuple[Any, ...]:
    """Return every ref, HEAD, and every file: whatever could be moved."""
    refs = project.git("for-each-ref", "--format=%(refname) %(objectname)")
    return refs, project.git("symbolic-ref", "-q", "HEAD"), project.head, project.files


FORGED: dict[str, dict[str, Any]] = {
    "rollback": {"rescue": "refs/harness/rescue/task-001/1", "category": "TEST_FAIL", "message": "no"},
    "commit": {"commit": "side", "head": "main"},
    "merge": {"commit": "side", "gate": {"target": "refs/heads/victim"}},
}


def _forged(project: Project, action: str) -> dict[str, Any]:
    """Return the fields of an intent that looks as if we had written it."""
    fields = {**FORGED[action]}
    for name in ("commit", "head"):
        if name in fields:
            fields[name] = _oid(project, fields[name])
    if action == "rollback":
        fields["head"] = project.head
    return fields


@pytest.mark.parametrize("verb", LOOKING_ON, ids=" ".join)
@pytest.mark.parametrize("action", FORGED)
def test_nothing_is_done_for_an_untrusted_list(project: Project, action: str, verb: tuple[str, ...]) -> None:
    _list(project, action, **_forged(project, action))
    before, agent = _stands(project), project.agent()

    refused = [agent.fails(8, *verb) for _ in range(2)]

    assert _stands(project) == before
    assert project.task()["status"] == "in_progress"
    assert all(each["error"]["kind"] == "REFUSED" for each in refused)
    assert "harness trust" in refused[0]["error"]["hint"]


def _trusted(project: Project) -> Agent:
    person = project.agent("person")
    person.trusts()
    return project.agent()


WRONG: dict[str, tuple[str, dict[str, Any]]] = {
    "a symbolic head": ("commit", {"head": "HEAD"}),
    "a symbolic commit": ("commit", {"commit": "side"}),
    "a short commit": ("commit", {"commit": "short"}),
    "a base of its own": ("rollback", {"base": "elsewhere", "began_at": "HEAD~1"}),
    "a rescue among the branches": ("rollback", {"rescue": "refs/heads/victim"}),
    "a rescue among the tags": ("rollback", {"rescue": "refs/tags/v1"}),
    "another branch than the gate's": ("commit", {"ref": "refs/heads/victim"}),
    "a gate that is no branch": ("merge", {"gate": {"target": "HEAD"}}),
    "a gate on HEAD": ("rollback", {"gate": {"branch": "HEAD"}}),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_we_never_write_is_not_done_for_a_trusted_list(project: Project, case: str) -> None:
    action, fields = WRONG[case]
    fields = {**_forged(project, action), **fields}
    if fields.get("commit") == "short":
        fields["commit"] = _oid(project, "side")[:12]
    if fields.get("base") == "elsewhere":
        fields["base"] = _oid(project, "HEAD~2")
    _list(project, action, **fields)
    agent = _trusted(project)
    before = _stands(project)

    error = agent.fails(3, "start")["error"]

    assert _stands(project) == before
    assert error["kind"] == "CONFIG"
    assert "tasks[0]" in error["message"]
    assert "by hand" in error["hint"]


def test_a_commit_is_published_on_the_branch_of_the_gate_alone(project: Project) -> None:
    project.git("checkout", "-q", "-f", "victim")
    side = project.git("commit-tree", "-p", "HEAD", "-m", "Forged", "side^{tree}")
    _list(project, "commit", commit=side, head=project.head, began_at="HEAD")
    agent = _trusted(project)
    tips = [_oid(project, name) for name in ("main", "victim", "side")]

    agent("start")

    assert [_oid(project, name) for name in ("main", "victim", "side")] == tips
    assert project.task()["status"] != "completed"


def test_a_commit_is_published_only_on_top_of_what_stands(project: Project) -> None:
    """The side branch is no work on what main has now."""
    orphan = project.git("commit-tree", "-m", "Forged", "side^{tree}")
    _list(project, "commit", commit=orphan, head=project.head, began_at="HEAD")
    agent = _trusted(project)
    main = project.head

    agent("start")

    assert _oid(project, "main") == main
    assert project.task()["status"] != "completed"


def test_a_commit_prepared_before_another_is_kept_and_not_published(project: Project) -> None:
    project.git("checkout", "-q", "-f", "main")
    prepared = project.git("commit-tree", "-p", "HEAD", "-m", "Prepared", "side^{tree}")
    _list(project, "commit", commit=prepared, head=project.head, began_at="HEAD")
    project.put("person.txt")
    project.git("add", "person.txt")
    theirs = project.commit_only("Made by the user meanwhile")
    agent = _trusted(project)

    reply = json.dumps(agent.ok("start"))

    assert project.head != prepared
    assert _oid(project, next(ref for ref in project.refs() if ref.endswith("-commit"))) == prepared
    assert "HEAD moved while the commit was interrupted" in project.task()["error_log"][-1]
    kept = project.git("rev-list", "--all", "--glob=refs/harness").splitlines()
    assert theirs in kept
    assert "1 commit left main" in reply


def _rescued(project: Project, commit: str) -> str:
    """Bring a list whose rollback began one commit ago and has kept `commit` already; return the base."""
    project.git("update-ref", FORGED["rollback"]["rescue"], commit)
    _list(project, "rollback", **{**_forged(project, "rollback"), "head": _oid(project, "HEAD~1")})
    return _oid(project, "HEAD~2")


def test_a_rollback_goes_on_where_all_that_it_takes_off_the_branch_is_rescued_already(
    project: Project,
) -> None:
    base = _rescued(project, project.head)

    _trusted(project).ok("start")

    assert _oid(project, "main") == base


def test_a_rollback_takes_nothing_off_a_branch_that_somebody_has_moved_since(project: Project) -> None:
    """Its rescue, of before, lacks what they have committed."""
    _rescued(project, "HEAD~1")
    agent = _trusted(project)
    main, files = project.head, project.files

    said = agent("start", "--json").json

    assert _oid(project, "main") == main
    assert project.files == files
    assert "HEAD has moved" in str(said)
    assert "tracked.txt" in project.git("show", "--stat", project.refs()[-1])


def test_what_was_untracked_is_believed_only_from_a_ref_of_ours(project: Project, tmp_path: Path) -> None:
    """A tree may hold any name; files are written from this one."""
    blob = project.git("hash-object", "-w", "tracked.txt")
    content = _mktree(project, f"100644 blob {blob}\tevil")
    tree = _mktree(project, f"040000 tree {content}\tcontent")
    forged = project.git("commit-tree", "-m", "Forged", tree)
    project.git("checkout", "-q", "-f", "main")
    _list(project, "rollback", **_forged(project, "rollback"), gate={"before": forged}, began_at="HEAD")
    agent = _trusted(project)

    agent("start")

    assert not (project.top / "evil").exists()
    assert not (tmp_path / "evil").exists()


def _mktree(project: Project, row: str) -> str:
    done = run_to_end(["git", "mktree"], cwd=project.top, stdin=f"{row}\n", check=True)
    return done.stdout.strip()


def _resumable(project: Project, **more: Any) -> None:
    """Bring a list whose task has a checkpoint of the tree that stands: it would simply go on."""
    project.git("checkout", "-q", "-f", "main")
    gate = {"command": "0" * 64, "branch": "refs/heads/main"}
    checkpoints = [{"step": 1, "total": 2, "tree": _oid(project, "HEAD^{tree}")}]
    began = _oid(project, "HEAD~2")
    _bring(project, started_at_commit=began, gate=gate, checkpoints=checkpoints, **more)


def test_giving_up_an_attempt_moves_no_branch_to_where_a_list_says_it_began(project: Project) -> None:
    _resumable(project)
    before, agent = _stands(project), project.agent()

    for verb in (
        ("start",),
        ("release", "task-001"),
        ("fail", "task-001", "--category", "TASK_EXEC", "--message", "no"),
        ("start",),
        ("release", "task-001"),
    ):
        agent(*verb)

    assert _stands(project) == before


def test_going_on_a_third_time_moves_no_branch_of_an_untrusted_list(project: Project) -> None:
    """Nothing has moved since, the list says: then the attempt has failed, and goes back to its base."""
    stood = {"tree": _oid(project, "main^{tree}"), "checkpoints": 1, "times": 2}
    _resumable(project, interruptions=2, interrupted=stood)
    base, before, agent = _oid(project, "HEAD~2"), _stands(project), project.agent()

    refused = [agent.fails(8, *verb)["error"] for verb in LOOKING_ON]

    assert _stands(project) == before
    assert all("harness trust" in each["hint"] for each in refused)
    _trusted(project).ok("start")
    assert project.head == base
