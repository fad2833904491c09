"""`harness hooks`: into every host's own file and out again, and nobody loses a setting."""

from __future__ import annotations

import codecs
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.hookinstall.hookfiles import HOSTS, JSON_HOSTS, agent, everything, place, put
from tests.terminal.pseudo_terminal import answered
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
    """A dry run writes nothing, and twice is as good as once."""
    before = everything(home)
    dry = agent.ok("hooks", "install", "--agent", name, "--dry-run")
    assert not dry["written"]
    assert everything(home) == before

    said = agent.ok("hooks", "install", "--agent", name)
    assert said["written"]
    assert Path(said["file"]) == place(home, name)
    assert "harness-stop.py" in place(home, name).read_text("utf-8")
    installed = everything(home)
    twice = agent.ok("hooks", "install", "--agent", name)
    assert not twice["written"]
    assert "Nothing had to be changed" in twice["message"]
    dry_out = agent.ok("hooks", "uninstall", "--agent", name, "--dry-run")
    assert not dry_out["written"]
    assert everything(home) == installed
    for said in (dry, dry_out):
        assert any("harness-stop.py" in row for row in said["diff"])

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
def test_foreign_entries_stand_where_they_stood_and_come_back(agent: Agent, home: Path, name: str) -> None:
    settings = {"theme": "dark", "hooks": {**FOREIGN[name], "Other": []}, "env": {"KEY": "secret"}}
    for indent in (None, 2, 4, "\t"):
        file = put(place(home, name), json.dumps(settings, indent=indent))
        file.chmod(0o600)
        before = file.read_bytes()
        agent.ok("hooks", "install", "--agent", name)
        installed = json.loads(file.read_text("utf-8"))
        assert list(installed)[:3] == list(settings)
        assert (installed["theme"], installed["env"]) == (settings["theme"], settings["env"])
        for event, entries in FOREIGN[name].items():
            assert installed["hooks"][event][: len(entries)] == entries
        (kept,) = file.parent.glob("*.bak-harness")
        assert kept.read_bytes() == before
        assert {stat.S_IMODE(path.stat().st_mode) for path in (file, kept)} == {0o600}
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
def test_comments_breaks_and_marks_are_kept(agent: Agent, home: Path, data: bytes, *, touched: bool) -> None:
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


def test_the_difference_shows_no_setting_of_the_person(agent: Agent, home: Path) -> None:
    settings = {"env": {"KEY": "secret"}, "token": "secret"}
    for indent in (None, 2):
        put(place(home, "claude"), json.dumps(settings, indent=indent))
        said = agent("hooks", "install", "--agent", "claude", "--dry-run")
        assert "harness-" in said.text
        assert "secret" not in said.text


def test_the_answer_is_bounded(agent: Agent, home: Path) -> None:
    many = {f"E{n}": [{"hooks": [{"type": "command", "command": "x" * 2000}]}] for n in range(100)}
    put(place(home, "claude"), json.dumps({"hooks": many}, indent=2))
    said = agent("hooks", "install", "--agent", "claude")
    assert len(said.text) < 50_000


def test_on_a_terminal_a_person_is_asked_first(agent: Agent, home: Path) -> None:
    for answer in ("n", "", "y"):
        code, said = answered(agent.cwd, f"{answer}\n", "hooks", "install", "--agent", "codex")
        assert code == (0 if answer == "y" else 8)
        assert "Write this? [y/N]" in said
        assert "harness-stop.py" in said
        assert place(home, "codex").exists() == (answer == "y")
