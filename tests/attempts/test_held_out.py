"""A held-out check must pass too, on a clean checkout; who is judged by it learns no more than whether."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tests.system.git.gitrepo import put
from tests.verbs.project import Agent, Project

SECRET = "the-answer-is-42"
TEST = f"""
from product import answer


def test_{SECRET.replace("-", "_")}():
    assert answer() == 42, "{SECRET}"
"""
PYTEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"


@pytest.fixture
def person(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    monkeypatch.setenv("HARNESS_HOME", str(tmp_path / "data"))
    put(tmp_path / "held" / "test_held.py", TEST)
    return project.agent("person")


def _held(tmp_path: Path, place: str = "test_more.py") -> str:
    return f"{tmp_path / 'held' / 'test_held.py'}:{place}"


def _add(person: Agent, *words: str, check: str = "test -f product.py") -> None:
    options = [option for word in words for option in ("--hidden", word)]
    person.ok("add", "One", "--validate", check, *options)


def _attempt(project: Project, agent: Agent, answer: int) -> None:
    agent.ok("claim")
    project.put("product.py", f"def answer():\n    return {answer}\n")


def test_work_that_passes_both_is_completed(
    project: Project, agent: Agent, person: Agent, tmp_path: Path
) -> None:
    _add(person, _held(tmp_path), f"{PYTEST} test_more.py")
    _attempt(project, agent, 42)

    agent.ok("finish")

    assert project.task()["status"] == "completed"
    assert "product.py" in project.in_commit()
    assert "test_more.py" not in project.in_commit()


def test_work_that_fails_what_is_held_out_has_failed_and_learns_nothing_of_it(
    project: Project, agent: Agent, person: Agent, tmp_path: Path
) -> None:
    _add(person, _held(tmp_path), f"{PYTEST} test_more.py")
    _attempt(project, agent, 41)

    said = agent.fails(1, "finish")

    task = project.task()
    assert (task["status"], task["attempts"]) == ("failed", 1)
    assert "A held-out check failed." in said["message"]
    assert not _leaks(project, json.dumps(said), tmp_path)


def _leaks(project: Project, said: str, tmp_path: Path) -> list[str]:
    """Return where something of the held-out check stands beside the person's data directory."""
    words = (SECRET, "test_more", "test_held")
    texts = {"reply": said} | {
        str(path.relative_to(project.top)): path.read_bytes().decode("utf-8", "replace")
        for path in project.top.rglob("*")
        if path.is_file() and tmp_path / "data" not in path.parents
    }
    return [f"{word} in {name}" for name, text in texts.items() for word in words if word in text]


def test_the_list_has_no_more_than_a_digest_and_others_cannot_read_what_is_kept(
    person: Agent, project: Project, tmp_path: Path
) -> None:
    _add(person, _held(tmp_path), f"{PYTEST} test_more.py")

    held_out = project.task()["validation"]["hidden"]

    assert re.fullmatch(r"[0-9a-f]{64}", held_out["sha256"])
    assert list(held_out) == ["sha256"]
    assert not _leaks(project, "", tmp_path)
    kept = list((tmp_path / "data" / "hidden").rglob("*"))
    assert [path for path in kept if path.stat().st_mode & 0o077] == []
    assert (tmp_path / "data" / "hidden").stat().st_mode & 0o777 == 0o700
