"""`harness hooks`: into every host's own file and out again, and nobody loses a setting."""

from __future__ import annotations

import codecs
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_lib.agents import claude
from harness_lib.hookinstall import entries
from harness_lib.hookinstall.entries import command
from tests.conftest import CHECKOUT
from tests.hookinstall.conftest import HOSTS, JSON_HOSTS, everything, place
from tests.system.git.gitrepo import put
from tests.terminal.pseudo_terminal import answered
from tests.verbs.project import Agent

OURS = command(Path("/x/hooks/harness-stop.py"), claude.HOOKS)
FOREIGN: dict[str, dict[str, list[dict[str, Any]]]] = {
    "claude": {"Stop": [{"hooks": [{"type": "command", "command": "theirs"}]}]},
    "codex": {"Stop": [{"hooks": [{"type": "command", "command": "theirs", "timeout": 3}]}]},
    "qwen": {"Stop": [{"hooks": [{"type": "command", "command": "theirs", "env": {"A": "b"}}]}]},
    "gemini": {"AfterAgent": [{"matcher": "*", "hooks": [{"type": "command", "command": "theirs"}]}]},
    "copilot": {"Stop": [{"type": "command", "bash": "theirs"}]},
    "cursor": {"stop": [{"command": "theirs"}]},
}


@pytest.mark.parametrize("name", HOSTS)
def test_where_there_was_nothing_there_is_nothing_again(agent: Agent, home: Path, name: str) -> None:
    """A dry run writes nothing, twice is as good as once, and the copy that installed them may be another."""
    before = everything(home)
    dry = agent.ok("hooks", "install", "--agent", name, "--dry-run")
    assert not dry["written"]
    assert everything(home) == before

    said = agent.ok("hooks", "install", "--agent", name)
    assert said["written"]
    assert Path(said["file"]) == place(home, name)
    assert "harness-stop.py" in place(home, name).read_text()
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

    agent.ok("hooks", "install", "--agent", name)
    of_this = place(home, name).read_text()
    place(home, name).write_text(of_this.replace(f"{CHECKOUT}/hooks", "/elsewhere/hooks"))
    agent.ok("hooks", "uninstall", "--agent", name)
    assert everything(home) == before


@pytest.mark.parametrize("scope", ["user", "project"])
def test_a_directory_in_which_something_lies_stays(agent: Agent, home: Path, scope: str) -> None:
    top = {"user": home / ".copilot", "project": agent.cwd / ".github"}[scope]
    agent.ok("hooks", "install", "--agent", "copilot", "--scope", scope)
    put(top / "hooks/mine.json", "{}")
    agent.ok("hooks", "uninstall", "--agent", "copilot")
    assert [path.name for path in top.rglob("*")] == ["hooks", "mine.json"]


@pytest.mark.parametrize("name", JSON_HOSTS)
def test_foreign_entries_stand_where_they_stood_and_come_back(agent: Agent, home: Path, name: str) -> None:
    settings = {"theme": "dark", "hooks": {**FOREIGN[name], "Other": []}, "env": {"KEY": "secret"}}
    for indent in (None, 2, 4, "\t"):
        file = put(place(home, name), json.dumps(settings, indent=indent))
        file.chmod(0o600)
        before = file.read_bytes()
        agent.ok("hooks", "install", "--agent", name)
        installed = json.loads(file.read_text())
        assert list(installed)[:3] == list(settings)
        assert (installed["theme"], installed["env"]) == (settings["theme"], settings["env"])
        for event, theirs in FOREIGN[name].items():
            assert installed["hooks"][event][: len(theirs)] == theirs
        (kept,) = file.parent.glob("*.bak-harness")
        assert kept.read_bytes() == before
        assert {stat.S_IMODE(path.stat().st_mode) for path in (file, kept)} == {0o600}
        agent.ok("hooks", "uninstall", "--agent", name)
        assert file.read_bytes() == before
        assert not kept.exists()


@pytest.mark.parametrize("name", JSON_HOSTS)
def test_the_user_goes_on_editing_and_only_ours_is_taken_back(agent: Agent, home: Path, name: str) -> None:
    file = put(place(home, name), json.dumps({"hooks": FOREIGN[name]}, indent=2))
    agent.ok("hooks", "install", "--agent", name)
    installed = json.loads(file.read_text())
    event = next(iter(FOREIGN[name]))
    installed["hooks"][event].append({**FOREIGN[name][event][0], "note": "mine too"})
    installed["model"] = "other"
    file.write_text(json.dumps(installed, indent=2))
    agent.ok("hooks", "uninstall", "--agent", name)
    left = json.loads(file.read_text())
    assert left["model"] == "other"
    assert left["hooks"] == {event: [*FOREIGN[name][event], {**FOREIGN[name][event][0], "note": "mine too"}]}


COMMENTED = """\
// My settings.
{
  "theme": "dark", // at night
  "hooks": {
    /* what I run: "hooks" */
    "AfterAgent": [
      { "hooks": [{ "type": "command", "command": "theirs // no comment" }] }, // keep
    ],
  },
}
"""


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (COMMENTED.encode(), "comments or trailing commas"),
        (codecs.BOM_UTF8 + COMMENTED.replace("\n", "\r\n").encode(), "comments or trailing commas"),
        (b'{"a": 1, "b": {"c": 1, "c": 2}}', "the name 'c' twice"),
        (b'{"a": 1e400}', "a number or a character"),
        (b'{"a": "\xc3\xa4 \\ud800"}', "a number or a character"),
    ],
)
def test_a_file_of_which_something_would_be_lost_is_left_and_the_lines_to_add_are_shown(
    agent: Agent, home: Path, data: bytes, what: str
) -> None:
    """Once they are there, it is known, and only its user can take them out."""
    file = put(place(home, "gemini"), data)
    said = agent.fails(8, "hooks", "install", "--agent", "gemini")
    assert what in said["message"]
    assert file.read_bytes() == data
    lines = json.loads(said["error"]["hint"].partition("\n")[2])
    assert "harness-stop.py" in lines["hooks"]["AfterAgent"][0]["hooks"][0]["command"]
    assert "Gemini CLI: no hooks" in agent.ok("hooks", "status", "--agent", "gemini")["message"]

    added = put(file, f"// mine\n{json.dumps(lines)}")
    before = added.read_bytes()
    assert str(file) in agent.ok("hooks", "status", "--agent", "gemini")["message"]
    assert not agent.ok("hooks", "install", "--agent", "gemini")["written"]
    assert "yourself" in agent.fails(8, "hooks", "uninstall", "--agent", "gemini")["error"]["hint"]
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    "data",
    [
        b'{"hooks":{},"a":1}',
        b'{"a": "\xc3\xa4\xe2\x80\xa6"}',
        b'{\r\n\t"a": "\\u00e4",\r\n\t"b": [1.5, -0.0, 1e10]\r\n}\r\n',
        codecs.BOM_UTF8 + b'{\n    "a": 1\n}\n',
        b"{ }",
        b"{\n\n}\n",
        b"",
        b"  \n",
    ],
)
def test_indentation_line_breaks_marks_and_alphabet_are_kept(agent: Agent, home: Path, data: bytes) -> None:
    file = put(place(home, "gemini"), data)
    agent.ok("hooks", "install", "--agent", "gemini")
    installed = file.read_bytes()
    assert installed.startswith(codecs.BOM_UTF8) == data.startswith(codecs.BOM_UTF8)
    assert installed.isascii() == data.isascii()
    if b"\r\n" in data:
        assert installed.count(b"\n") == installed.count(b"\r\n")
        assert b'\r\n\t"hooks": {\r\n\t\t"AfterAgent"' in installed
    agent.ok("hooks", "uninstall", "--agent", "gemini")
    assert file.read_bytes() == data


VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
HOOKS_OF_OTHERS = st.dictionaries(st.sampled_from(["Stop", "AfterAgent", "x"]), VALUES, max_size=3)


@settings(max_examples=60)
@given(
    st.dictionaries(st.text(max_size=3), VALUES, max_size=4),
    HOOKS_OF_OTHERS,
    st.sampled_from([None, 2, "\t"]),
)
def test_no_setting_is_lost_whatever_it_is(value: dict[str, Any], hooks: Any, indent: Any) -> None:
    text = json.dumps({**value, "hooks": hooks}, indent=indent)
    before = entries.parsed(text)
    assert before == json.loads(text)
    changed = entries.parsed(text)
    entry: dict[str, object] = {"hooks": [{"command": OURS}]}
    entries.install(changed, {"Ours": entry}, {})
    assert [typed for _, typed in entries.handlers(changed)].count(OURS) == 1
    assert entries.rendered(before, text) == text
    again = entries.parsed(entries.rendered(changed, text))
    entries.uninstall(again)
    # An empty member that was there before goes with ours.
    assert again == {key: each for key, each in before.items() if key != "hooks" or each}


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


def test_on_a_terminal_the_user_is_asked_first(agent: Agent, home: Path) -> None:
    for answer in ("n", "", "y"):
        code, said = answered(agent.cwd, f"{answer}\n", "hooks", "install", "--agent", "codex")
        assert code == (0 if answer == "y" else 8)
        assert "Write this? (--dry-run shows it line by line) [y/N]" in said
        assert "harness-stop.py" in said
        assert place(home, "codex").exists() == (answer == "y")


def test_hooks_in_a_cache_are_told(agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "cache/hooks"
    place.parent.mkdir()
    place.symlink_to(entries.folder())
    monkeypatch.setattr(entries, "folder", lambda: place)
    said = agent.ok("hooks", "install", "--agent", "codex", "--dry-run")
    assert "lies in a cache" in " ".join(said["warnings"])
