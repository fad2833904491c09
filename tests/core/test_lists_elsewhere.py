"""Where a list may lie: elsewhere in the repository, hidden from git, beside a git that is closed."""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path

import pytest

import harness_lib
from harness_lib.system import state_lock
from harness_lib.system.files import atomic, nofollow
from harness_lib.system.place import find_root, session_notes
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import sh
from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project


@pytest.fixture
def person(make_project: Make) -> Agent:
    """Return the user at the top of a repository with a list of one task in `pkg/the api`."""
    project = make_project(bare=True)
    project.commit(files={"pkg/the api/readme": "x\n"})
    made = project.agent("person")
    made.ok("init", "pkg/the api")
    project.agent("person", project.top / "pkg/the api").ok("add", "One", "--validate", "true")
    return made


def test_every_verb_says_where_the_list_is(person: Agent) -> None:
    place = person.cwd / "pkg/the api"
    for verb in ("status", "start", "claim", "check", "stop", "add Title"):
        error = person.fails(2, *verb.split())["error"]

        assert f"this repository has one in {place}" in error["message"]
        assert f"cd '{place}'" in error["hint"]
        assert "init" not in error["hint"]
    # A newcomer and the doctor are told too.
    assert str(place) in person().out
    assert str(place) in person("doctor").out


def test_a_second_list_is_made_only_where_its_place_is_named(person: Agent) -> None:
    error = person.fails(2, "init")["error"]

    assert f"has a task list in {person.cwd / 'pkg/the api'}" in error["message"]
    assert "harness init ." in error["hint"]
    assert not (person.cwd / "harness-tasks.json").exists()
    assert "task list already" in person.ok("init", "pkg/the api")["message"]
    person.ok("init", ".")
    assert person.ok("status")["counts"]["total"] == 0


def test_nor_is_one_made_below_another_by_mistake(project: Project) -> None:
    project.put("src/code")
    below = project.agent("person", project.top / "src")

    error = below.fails(2, "init")["error"]

    assert f"has a task list in {project.top}" in error["message"]
    assert not (project.top / "src/harness-tasks.json").exists()


def test_a_repository_inside_another_has_a_list_of_its_own(project: Project) -> None:
    inner = project.top / "inner"
    sh(project.top, "init", "-q", str(inner))

    made = project.agent("person", inner).ok("init")

    assert made["root"] == str(inner)


def test_a_list_above_that_is_in_no_repository_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / "harness-tasks.json").write_text('{"tasks": []}', encoding="utf-8")
    inner = Project(tmp_path / "inner")
    sh(tmp_path, "init", "-q", str(inner.top))

    assert inner.agent("person").ok("init")["root"] == str(inner.top)
    inner.close()


def test_a_directory_that_is_gone_is_not_named(person: Agent) -> None:
    (person.cwd / "pkg").rename(person.cwd / "moved")

    assert "harness init" in person.fails(2, "status")["error"]["hint"]
    person.ok("init")


def test_a_list_that_was_lost_there_is_named_and_comes_back(person: Agent) -> None:
    place = person.cwd / "pkg/the api"
    for file in place.glob("harness-*"):
        file.unlink()

    assert str(place) in person.fails(2, "status")["error"]["message"]
    person.cwd = place
    assert person.ok("status")["counts"]["total"] == 1


PLUGINS = (
    "tools/look",
    "hooks.d/done/50-log",
    "providers/ours.conf",
    "settings.conf",
    "mcp.json",
    "models.conf",
)


def hidden(workshop: Workshop) -> list[str]:
    """Return what lies in the private directory, as git sees it; it must hide all."""
    shown = workshop.git.run("status", "--porcelain", "--untracked-files=all", "--", ".harness").stdout
    assert shown == b""
    return sorted(path.name for path in (workshop.top / ".harness").iterdir())


def test_plugins_are_seen_by_git_and_nothing_of_ours(tmp_path: Path) -> None:
    workshop = Workshop.make(tmp_path)
    workshop.file_task("one")
    workshop.add("Fails", "echo no; exit 1", "--max-attempts", "1")
    workshop.run("-j", "2")
    workshop.ok("check")
    session_notes.write(session_notes.path(str(workshop.top), "beats", "x"), b"")
    session_notes.keep_bug(str(workshop.top), "report")

    assert {"generations", "logs", "summary.json", "state.lock", "beats"} <= set(hidden(workshop))
    for name in PLUGINS:
        path = workshop.top / ".harness" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine\n", encoding="utf-8")
    seen = workshop.git.run("status", "--porcelain", "--untracked-files=all").stdout.decode()
    assert {line[3:] for line in seen.splitlines() if ".harness" in line} == {
        f".harness/{name}" for name in PLUGINS
    }
    workshop.git.run("add", *(f".harness/{name}" for name in PLUGINS))
    assert not workshop.ok("status")["warnings"]


def test_every_name_in_the_directory_that_the_code_has_is_hidden() -> None:
    source = Path(harness_lib.__file__).parent
    named = {f"{kind}/" for kind in session_notes.KINDS} | {f"{find_root.GENERATIONS}/"}
    for path in source.rglob("*.py"):
        if not {"hs", "loop"} & set(path.parts):
            named |= set(re.findall(r'private / "([\w.-]+)"', path.read_text(encoding="utf-8")))
    assert {"logs", "state.lock", "summary.json"} < named
    patterns = [
        re.compile(re.escape(name).replace(r"\*", ".*").removesuffix("/") + "/?")
        for name in nofollow.PATTERNS
    ]
    assert not [name for name in named if not any(pattern.fullmatch(name) for pattern in patterns)]


@pytest.mark.parametrize(
    ("before", "renewed"),
    [(b"*\n", True), (None, True), (b"", False), (b"*\n!tools\n", False), (b"/mine\n", False)],
)
def test_only_rules_of_ours_are_renewed(project: Project, before: bytes | None, *, renewed: bool) -> None:
    rules = project.top / ".harness" / ".gitignore"
    rules.unlink(missing_ok=True)
    if before is not None:
        rules.write_bytes(before)

    project.agent().ok("add", "One", "--validate", "true")

    assert rules.read_bytes() == (nofollow.RULES if renewed else before)


def test_rules_that_are_a_link_are_left_alone(tmp_path: Path) -> None:
    private, elsewhere = tmp_path / ".harness", tmp_path / "elsewhere"
    private.mkdir(mode=0o700)
    elsewhere.write_bytes(b"*\n")
    (private / ".gitignore").symlink_to(elsewhere)

    with state_lock.StateLock(private / "state.lock"):
        assert elsewhere.read_bytes() == b"*\n"


@pytest.fixture
def closed(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project where no file can be made in the git directory, as on a read-only mount."""
    make = os.open

    def refuse(path: str | Path, flags: int, *args: int, **more: int) -> int:
        if flags & os.O_CREAT and "/.git/" in os.fspath(path):
            raise OSError(errno.EROFS, "Read-only file system", os.fspath(path))
        return make(path, flags, *args, **more)

    monkeypatch.setattr(os, "open", refuse)
    return project


@pytest.mark.parametrize("verb", ["start", "claim"])
def test_codex_is_told_how_it_must_be_started_and_not_held(closed: Project, agent: Agent, verb: str) -> None:
    closed.edit(tasks=[{"id": "task-001", "status": "pending", "validation": {"command": "true"}}])

    error = agent.fails(7, verb, CODEX_SESSION_ID="abc")["error"]

    roots = json.dumps([str(closed.top / ".git")])
    assert f"codex -c 'sandbox_workspace_write.writable_roots={roots}'" in error["hint"]
    assert "Nothing was changed" in error["message"]
    assert closed.state["sessions"] == []


def test_an_open_session_is_halted(project: Project, one: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    one.ok("start")
    monkeypatch.setattr(atomic, "can_write", lambda _place: False)

    one.fails(7, "claim")

    assert project.state["sessions"][0]["halt"].startswith("ENV_SETUP")


def test_init_leaves_nothing_half_made(make_project: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project(bare=True)
    monkeypatch.setattr(atomic, "can_write", lambda _place: False)

    project.agent().fails(7, "init")

    assert sorted(project.files) == ["tracked.txt"]
    assert not project.file.exists()
    assert not (project.top / ".harness").exists()
