"""`harness hooks`: into every host's own file and out again, and nobody loses a setting."""

from __future__ import annotations

import codecs
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import read_to_end, typed
from tests.hookinstall.hookfiles import HOSTS, JSON_HOSTS, agent, everything, place, put
from tests.verbs.project import Agent

__all__ = ["agent"]  # a fixture

FOREIGN: dict[str, dict[str, list[dict[str, Any]]]] = {
    "claude": {"Stop": [{"hooks": [{"type": "command", "command": "theirs"}]}]},
    "codex": {"Stop": [{"hooks": [{"type": "command", "command": "theirs", "timeout": 3}]}]},
    "gemini": {"AfterAgent": [{"matcher": "*", "hooks": [{"type": "command", "command": "theirs"}]}]},
    "copilot": {"Stop": [{"type": "command", "bash": "theirs"}]},
    "cursor": {"stop": [{"command": "theirs"}]},
}


@pytest.mark.parametrize("name", HOSTS)
def test_where_there_was_nothing_there_is_nothing_again(agent: Agent, home: Path, name: str) -> None:
    before = everything(home)
    said = agent.ok("hooks", "install", "--agent", name)
    assert said["written"]
    assert Path(said["file"]) == place(home, name)
    assert "harness-stop.py" in place(home, name).read_text("utf-8")
    agent.ok("hooks", "uninstall", "--agent", name)
    assert everything(home) == before
    assert set(home.iterdir()) <= {home / ".gitconfig", home / "data"}
    assert not list((home / "data").glob("hook*"))


@pytest.mark.parametrize("scope", ["user", "project"])
def test_what_was_there_before_or_is_used_since_stays(agent: Agent, home: Path, scope: str) -> None:
    """Of ~/.copilot/hooks only the directory that install has made goes, and only if nothing lies in it."""
    top = {"user": home / ".copilot", "project": agent.cwd / ".github"}[scope]
    top.mkdir()
    for _ in range(2):
        agent.ok("hooks", "install", "--agent", "copilot", "--scope", scope)
        agent.ok("hooks", "uninstall", "--agent", "copilot")
        assert list(top.iterdir()) == []

    agent.ok("hooks", "install", "--agent", "copilot", "--scope", scope)
    put(top / "hooks" / "mine.json", "{}")
    agent.ok("hooks", "uninstall", "--agent", "copilot")
    assert [path.name for path in top.rglob("*")] == ["hooks", "mine.json"]


def test_a_directory_that_a_person_has_made_in_the_place_of_ours_stays(agent: Agent, home: Path) -> None:
    agent.ok("hooks", "install", "--agent", "copilot")
    (home / ".copilot").rename(home / "kept")
    (home / ".copilot" / "hooks").mkdir(parents=True)
    (home / "kept" / "hooks" / "harness.json").rename(home / ".copilot" / "hooks" / "harness.json")

    agent.ok("hooks", "uninstall", "--agent", "copilot")

    assert list((home / ".copilot" / "hooks").iterdir()) == []


@pytest.mark.parametrize("name", JSON_HOSTS)
@pytest.mark.parametrize("indent", [None, 2, 4, "\t"])
def test_foreign_entries_stand_where_they_stood_and_all_comes_back(
    agent: Agent, home: Path, name: str, indent: int | str | None
) -> None:
    settings = {"theme": "dark", "hooks": {**FOREIGN[name], "Other": []}, "env": {"KEY": "secret"}}
    file = put(place(home, name), json.dumps(settings, indent=indent))
    file.chmod(0o600)
    before = file.read_bytes()
    agent.ok("hooks", "install", "--agent", name)
    installed = json.loads(file.read_text("utf-8"))
    assert list(installed)[:3] == list(settings)
    assert {key: installed[key] for key in ("theme", "env")} == {
        key: settings[key] for key in ("theme", "env")
    }
    for event, entries in FOREIGN[name].items():
        assert installed["hooks"][event][: len(entries)] == entries
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (kept,) = file.parent.glob("*.bak-harness")
    assert kept.read_bytes() == before
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    agent.ok("hooks", "uninstall", "--agent", name)
    assert file.read_bytes() == before
    assert not kept.exists()


@pytest.mark.parametrize("name", JSON_HOSTS)
def test_a_person_goes_on_editing_and_only_ours_is_taken_back(agent: Agent, home: Path, name: str) -> None:
    file = put(place(home, name), json.dumps({"hooks": FOREIGN[name]}, indent=2))
    agent.ok("hooks", "install", "--agent", name)
    installed = json.loads(file.read_text("utf-8"))
    event = next(iter(FOREIGN[name]))
    installed["hooks"][event].append({**FOREIGN[name][event][0], "note": "mine too"})
    installed["model"] = "other"
    file.write_text(json.dumps(installed, indent=2), encoding="utf-8")
    agent.ok("hooks", "uninstall", "--agent", name)
    left = json.loads(file.read_text("utf-8"))
    assert left["model"] == "other"
    assert left["hooks"] == {event: [*FOREIGN[name][event], {**FOREIGN[name][event][0], "note": "mine too"}]}


COMMENTED = """\
// My settings.
{
  "theme": "dark", // at night
  "hooks": {
    /* what I run */
    "AfterAgent": [
      { "hooks": [{ "type": "command", "command": "theirs" }] }, // keep
      // { "hooks": [] }
    ],
  },
  // "vim": true
}
"""


@pytest.mark.parametrize(
    "data",
    [
        COMMENTED.encode(),
        COMMENTED.replace("\n", "\r\n").encode(),
        codecs.BOM_UTF8 + COMMENTED.encode(),
        b'{"hooks":{},"a":1}',
        b'{"a": "\xc3\xa4\xe2\x80\xa6"}',
        b"{ }",
        b"{\n\n}\n",
        b"",
        b"  \n",
    ],
)
@pytest.mark.parametrize("touched", [False, True])
def test_comments_line_breaks_and_marks_are_kept(
    agent: Agent, home: Path, data: bytes, *, touched: bool
) -> None:
    file = put(place(home, "gemini"), data)
    agent.ok("hooks", "install", "--agent", "gemini")
    installed = file.read_bytes()
    for line in data.splitlines():
        if b"//" in line or b"/*" in line:
            assert line in installed
    assert installed.startswith(codecs.BOM_UTF8) == data.startswith(codecs.BOM_UTF8)
    if b"\r\n" in data:
        assert installed.count(b"\n") == installed.count(b"\r\n")
    if touched:
        file.write_bytes(installed + b"\n")
    agent.ok("hooks", "uninstall", "--agent", "gemini")
    if touched and data.strip(b" \n{}"):
        left = file.read_bytes()
        assert left == (data.replace(b'"hooks":{},', b"") if b'"hooks":{}' in data else data) + b"\n"
    elif not touched:
        assert file.read_bytes() == data


@pytest.mark.parametrize("name", HOSTS)
def test_twice_is_as_good_as_once(agent: Agent, home: Path, name: str) -> None:
    agent.ok("hooks", "install", "--agent", name)
    before = everything(home)
    said = agent.ok("hooks", "install", "--agent", name)
    assert not said["written"]
    assert "Nothing had to be changed" in said["message"]
    assert everything(home) == before


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("installed", [False, True])
def test_a_dry_run_writes_nothing(agent: Agent, home: Path, name: str, *, installed: bool) -> None:
    if installed:
        agent.ok("hooks", "install", "--agent", name)
    before = everything(home)
    said = agent.ok("hooks", "uninstall" if installed else "install", "--agent", name, "--dry-run")
    assert not said["written"]
    assert any("harness-stop.py" in row for row in said["diff"])
    assert everything(home) == before


def test_the_difference_shows_no_setting_of_the_person(agent: Agent, home: Path) -> None:
    settings = {"env": {"KEY": "secret"}, "token": "secret"}
    for indent in (None, 2):
        put(place(home, "claude"), json.dumps(settings, indent=indent))
        said = agent("hooks", "install", "--agent", "claude", "--dry-run")
        assert "harness-" in said.text
        assert "secret" not in said.text


def test_the_answer_is_bounded(agent: Agent, home: Path) -> None:
    many = {f"E{n}": [{"hooks": [{"type": "command", "command": "x" * 5000}]}] for n in range(500)}
    put(place(home, "claude"), json.dumps({"hooks": many}, indent=2))
    said = agent("hooks", "install", "--agent", "claude")
    assert len(said.text) < 50_000


@pytest.mark.parametrize("answer", ["y", "n", ""])
def test_on_a_terminal_a_person_is_asked_first(agent: Agent, home: Path, answer: str) -> None:
    with typed(agent.cwd, "hooks", "install", "--agent", "codex") as (process, terminal):
        os.write(terminal, f"{answer}\n".encode())
        said = read_to_end(terminal)
        assert process.wait() == (0 if answer == "y" else 8)
    assert "Write this? [y/N]" in said
    assert "harness-stop.py" in said
    assert place(home, "codex").exists() == (answer == "y")
