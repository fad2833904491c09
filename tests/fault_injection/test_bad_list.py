"""A list that is broken, foreign or hostile: every verb says where and what to do, and overwrites nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness_lib.state import schema
from tests.verbs.project import Agent, Project

VERBS = (("status",), ("start",), ("claim",), ("add", "x"), ("finish",), ("recover",), ("stop",))


def task(**fields: Any) -> dict[str, Any]:
    return {"id": "a", "status": "pending", **fields}


def tasks(*listed: Any) -> dict[str, Any]:
    return {"version": 2, "tasks": list(listed)}


# What the user or an agent may have saved, and words that the message must have. What is said of every other
# mistake: tests/state/test_codec.py.
CONTRACT: dict[str, tuple[Any, tuple[str, ...]]] = {
    "a list": ([], ("object",)),
    "misspelt status": (tasks(task(status="in-progress")), ("tasks[0].status", "in_progress")),
    "ten megabytes of title": (tasks(task(title="x" * 10_000_000)), ("tasks[0].title", "1000")),
    "five hundred problems": (tasks(*[{"id": f"t{n}"} for n in range(500)]), ("[9].status", "480 more")),
    "depth": ('{"tasks": ' + "[" * 100_000 + "]" * 100_000 + "}", ("deep",)),
}


@pytest.mark.parametrize(("document", "words"), CONTRACT.values(), ids=CONTRACT.keys())
def test_a_bad_list_is_config(project: Project, agent: Agent, document: Any, words: tuple[str, ...]) -> None:
    text = document if isinstance(document, str) else json.dumps(document)
    project.file.write_text(text)
    before, log = project.file.read_bytes(), project.log

    for verb in VERBS[:4]:
        error = agent.fails(3, *verb)["error"]

        assert error["kind"] == "CONFIG"
        assert "harness-tasks.json" in error["message"]
        assert all(word in error["message"] for word in words), error["message"]
        assert len(error["message"]) < 3000
        assert error["hint"]
    assert project.file.read_bytes() == before
    assert project.log == log


# -- not JSON: the only case in which an older list takes its place


def test_a_list_that_is_no_json_is_restored_and_kept(project: Project, agent: Agent) -> None:
    """What is none, and every other way to cut it off: tests/state."""
    agent.ok("add", "One", "--validate", "test -f done")
    agent.ok("claim")
    broken = project.file.read_bytes()[:-3]
    project.file.write_bytes(broken)
    project.put("done")

    shown = agent.ok("status")
    reply = agent.ok("finish")

    assert any("harness-tasks.json" in warning for warning in shown["warnings"])
    assert project.task()["status"] == "completed"
    assert project.in_commit() == ["done", "tracked.txt"]
    kept = list(project.top.glob("harness-tasks.json.broken-*"))
    assert [path.read_bytes() for path in kept] == [broken]
    assert project.grep("WARN", "restored")
    assert any("restored from" in warning for warning in reply["warnings"])
    assert project.git("status", "--porcelain") == ""


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["text", "json"])
def test_a_command_that_fails_says_both(project: Project, one: Agent, options: tuple[str, ...]) -> None:
    project.file.write_bytes(b"{")

    said = one("retry", "nobody", *options)

    assert said.code == 2
    if options:
        assert any("restored from" in warning for warning in said.json["warnings"])
        assert schema.problems(said.json, "reply") == []
    else:
        assert said.out == ""
        assert "harness: warning: harness-tasks.json is not JSON" in said.err
        assert "USAGE: " in said.err.splitlines()[-2]


def lose_everything(project: Project) -> None:
    for path in project.generations:
        path.unlink()
    (project.top / "harness-tasks.json.bak").unlink(missing_ok=True)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_nothing_good_left_is_exit_4(project: Project, one: Agent, verb: tuple[str, ...]) -> None:
    lose_everything(project)
    project.file.write_bytes(b'{"tasks": [')

    error = one.fails(4, *verb)["error"]

    assert "harness-tasks.json" in error["message"]
    assert project.file.read_bytes() == b'{"tasks": ['
    said = project.grep("ERROR [ENV_SETUP] harness-tasks.json corrupted and unrecoverable")
    assert len(said) == (verb != ("status",)), "looking at it writes nothing at all"
