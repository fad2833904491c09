"""`harness hooks`: into every host's own file and out again, and nobody loses a setting."""

from __future__ import annotations

import codecs
import json
import os
import shlex
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness_lib.hookio import dialect
from harness_lib.ops import hook_entries, hosts
from tests.cli.test_terminal import read_to_end, typed
from tests.ops.project import Agent, Project, Time

HOSTS = sorted(hosts.HOSTS)
JSON_HOSTS = [name for name in HOSTS if hosts.HOSTS[name].form != "toml"]
FOREIGN: dict[str, dict[str, list[dict[str, Any]]]] = {
    "claude": {"Stop": [{"hooks": [{"type": "command", "command": "theirs"}]}]},
    "codex": {"Stop": [{"hooks": [{"type": "command", "command": "theirs", "timeout": 3}]}]},
    "gemini": {"AfterAgent": [{"matcher": "*", "hooks": [{"type": "command", "command": "theirs"}]}]},
    "copilot": {"Stop": [{"type": "command", "bash": "theirs"}]},
    "cursor": {"stop": [{"command": "theirs"}]},
}


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    """Return somebody who stands in an empty directory: most of this needs no repository."""
    here = tmp_path / "here"
    here.mkdir()
    made = Agent("agent", here, Time())
    yield made
    made.die()


def place(home: Path, name: str) -> Path:
    """Return the person's file of the host `name`."""
    return home / hosts.HOSTS[name].files["user"][0]


def put(path: Path, data: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def everything(top: Path) -> dict[str, bytes]:
    return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}


def commands(path: Path) -> list[str]:
    """Return every command in a JSON file, in its order."""
    text = path.read_text("utf-8-sig")
    found: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            found.extend(value[key] for key in ("command", "bash") if key in value)
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            walk(each)

    walk(json.loads(text))
    return found


@pytest.mark.parametrize("name", HOSTS)
def test_where_there_was_nothing_there_is_nothing_again(agent: Agent, home: Path, name: str) -> None:
    before = everything(home)
    said = agent.ok("hooks", "install", "--agent", name)
    assert said["written"]
    assert Path(said["file"]) == place(home, name)
    assert "harness-stop.py" in place(home, name).read_text("utf-8")
    agent.ok("hooks", "uninstall", "--agent", name)
    assert everything(home) == before


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
    now = json.loads(file.read_text("utf-8"))
    assert list(now)[:3] == list(settings)
    assert {key: now[key] for key in ("theme", "env")} == {key: settings[key] for key in ("theme", "env")}
    for event, entries in FOREIGN[name].items():
        assert now["hooks"][event][: len(entries)] == entries
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
    now = json.loads(file.read_text("utf-8"))
    event = next(iter(FOREIGN[name]))
    now["hooks"][event].append({**FOREIGN[name][event][0], "note": "mine too"})
    now["model"] = "other"
    file.write_text(json.dumps(now, indent=2), encoding="utf-8")
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


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', 3),
        ('{\n  "hooks": []\n}', 2),
        ('{"a": 1}\n}', 2),
        ("[]", 1),
        (b'{\n"a": "\xff"}', 2),
    ],
)
@pytest.mark.parametrize("name", ["claude", "codex", "cursor"])
def test_a_broken_file_is_left_alone_and_its_line_named(
    agent: Agent, home: Path, name: str, data: str | bytes, line: int
) -> None:
    file = put(place(home, name), data)
    before = everything(home)
    said = agent.fails(3, "hooks", "install", "--agent", name)
    assert f"{file}, line {line}" in said["message"]
    assert everything(home) == before
    assert f"line {line}" in agent.ok("hooks", "status", "--agent", name)["message"]


def test_a_read_only_file_is_refused(agent: Agent, home: Path) -> None:
    file = put(place(home, "claude"), "{}")
    file.chmod(0o444)
    said = agent.fails(8, "hooks", "install", "--agent", "claude")
    assert "read-only" in said["message"]
    assert file.read_bytes() == b"{}"


def test_a_directory_in_the_place_of_the_file_is_refused(agent: Agent, home: Path) -> None:
    place(home, "claude").mkdir(parents=True)
    agent.fails(8, "hooks", "install", "--agent", "claude")


@pytest.mark.parametrize("dangling", [False, True])
def test_a_linked_file_is_written_through(
    agent: Agent, home: Path, tmp_path: Path, *, dangling: bool
) -> None:
    behind = tmp_path / "dotfiles" / "claude.json"
    if not dangling:
        put(behind, '{"a": 1}')
    link = place(home, "claude")
    link.parent.mkdir(parents=True)
    link.symlink_to(behind)
    agent.ok("hooks", "install", "--agent", "claude")
    assert link.is_symlink()
    assert len(commands(behind)) == len(hosts.CLAUDE.events)
    agent.ok("hooks", "uninstall", "--agent", "claude")
    assert link.is_symlink()
    assert behind.exists() == (not dangling)
    assert dangling or behind.read_text("utf-8") == '{"a": 1}'


def test_a_link_out_of_the_project_is_refused(agent: Agent, tmp_path: Path) -> None:
    """A clone could bring it."""
    (tmp_path / "elsewhere").mkdir()
    (agent.cwd / ".codex").symlink_to(tmp_path / "elsewhere")
    agent.fails(8, "hooks", "install", "--agent", "codex", "--scope", "project")
    assert not any((tmp_path / "elsewhere").iterdir())


def test_the_scope_project_is_the_top_of_the_work_tree(project: Project, agent: Agent, home: Path) -> None:
    agent.cwd = project.put("deep/er/file").parent
    before = everything(home)
    for name in ("claude", "codex", "gemini", "copilot", "cursor"):
        said = agent.ok("hooks", "install", "--agent", name, "--scope", "project")
        file = project.top / hosts.HOSTS[name].files["project"][0]
        assert Path(said["file"]) == file
        assert file.is_file()
        agent.ok("hooks", "uninstall", "--agent", name)
        assert not file.exists()
    assert everything(home) == before


def test_a_home_that_is_the_project_is_one_place(agent: Agent, home: Path) -> None:
    subprocess.run(["git", "init", "-q", str(home)], check=True)
    before = everything(home)
    agent.cwd = home
    agent.ok("hooks", "install", "--agent", "codex")
    assert "twice" not in agent("doctor").out
    agent.ok("hooks", "uninstall", "--agent", "codex")
    assert everything(home) == before


def test_kimi_has_no_file_for_a_project(agent: Agent) -> None:
    agent.fails(2, "hooks", "install", "--agent", "kimi", "--scope", "project")


def test_hooks_that_work_already_are_not_switched_on_twice(agent: Agent, home: Path) -> None:
    agent.ok("hooks", "install", "--agent", "codex")
    said = agent.ok("hooks", "install", "--agent", "codex", "--scope", "project")
    assert not said["written"]
    assert str(place(home, "codex")) in said["message"]


def test_a_skill_folder_that_brings_the_hooks_needs_no_file(agent: Agent, home: Path) -> None:
    folder = home / ".claude" / "skills" / "harness"
    for name in (".claude-plugin/plugin.json", "hooks/hooks.json"):
        put(folder / name, "{}")
    said = agent.ok("hooks", "install", "--agent", "claude")
    assert not said["written"]
    assert str(folder) in said["message"]
    put(place(home, "claude"), '{"enabledPlugins": {"harness@skills-dir": false}}')
    assert agent.ok("hooks", "install", "--agent", "claude")["written"]


def test_a_plugin_that_brings_the_hooks_needs_no_file(agent: Agent, home: Path) -> None:
    file = put(place(home, "claude"), '{"enabledPlugins": {"harness@mk": true}}')
    before = file.read_bytes()
    assert "plugin harness@mk" in agent.ok("hooks", "install", "--agent", "claude")["message"]
    assert file.read_bytes() == before


def test_a_package_without_hooks_says_where_they_are(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook_entries, "_PACKAGE", tmp_path / "site-packages" / "harness_lib")
    said = agent.fails(7, "hooks", "install", "--agent", "claude")
    assert "npx skills add" in said["error"]["hint"]


def test_entries_of_a_checkout_that_moved_are_led_to_the_new_place_where_they_stand(
    agent: Agent, home: Path
) -> None:
    """Codex knows a hook by its place in the list; nobody else's may move."""
    file = place(home, "codex")
    agent.ok("hooks", "install", "--agent", "codex")
    old = json.loads(file.read_text("utf-8").replace(str(hook_entries.folder()), "/gone/hooks"))
    old["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "theirs"}]})
    file.write_text(json.dumps(old, indent=2), encoding="utf-8")
    assert "is gone" in agent.ok("hooks", "status", "--agent", "codex")["message"]
    agent.ok("hooks", "install", "--agent", "codex")
    now = json.loads(file.read_text("utf-8"))
    assert [len(now["hooks"][event]) for event in now["hooks"]] == [2, 1, 1, 1, 1, 1, 1]
    assert now["hooks"]["Stop"][1] == old["hooks"]["Stop"][1]
    assert "/gone/" not in file.read_text("utf-8")


def test_another_harness_is_told_of_and_left(agent: Agent, home: Path) -> None:
    theirs = "python3 ~/.claude/skills/old/hooks/harness-stop.py"
    file = put(
        place(home, "claude"),
        json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": theirs}]}]}}),
    )
    said = agent.ok("hooks", "install", "--agent", "claude")
    assert "another harness" in said["warnings"][0]
    agent.ok("hooks", "uninstall", "--agent", "claude")
    assert commands(file) == [theirs]


def test_ours_among_the_handlers_of_somebody_else_leaves_alone(agent: Agent, home: Path) -> None:
    file = place(home, "claude")
    agent.ok("hooks", "install", "--agent", "claude")
    now = json.loads(file.read_text("utf-8"))
    now["hooks"]["Stop"][0]["hooks"].insert(0, {"type": "command", "command": "theirs"})
    file.write_text(json.dumps(now), encoding="utf-8")
    assert not agent.ok("hooks", "install", "--agent", "claude")["written"]
    agent.ok("hooks", "uninstall", "--agent", "claude")
    assert json.loads(file.read_text("utf-8")) == {
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "theirs"}]}]}
    }


@pytest.mark.parametrize(
    "text", ["", 'model = "x"\n', 'model = "x"', 'a = 1\r\n[[hooks]]\r\nevent = "X"\r\n']
)
@pytest.mark.parametrize("touched", [False, True])
def test_kimi_gets_a_block_at_the_end_and_loses_it(
    agent: Agent, home: Path, text: str, *, touched: bool
) -> None:
    file = put(place(home, "kimi"), text)
    agent.ok("hooks", "install", "--agent", "kimi")
    installed = file.read_bytes()
    assert installed.startswith(text.encode())
    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415 (not in 3.10)

        found = tomllib.loads(installed.decode())["hooks"][-1]
        assert set(found) == {"event", "command", "timeout"}
    if touched:
        file.write_bytes(installed + b"b = 2\n")
    agent.ok("hooks", "uninstall", "--agent", "kimi")
    if not touched:
        assert file.read_bytes() == text.encode()
    elif text.endswith("\n"):
        assert file.read_bytes() == text.encode() + b"b = 2\n"


def test_a_file_of_kimi_in_which_nothing_can_be_added_is_refused(agent: Agent, home: Path) -> None:
    file = put(place(home, "kimi"), "a = 1\nhooks = []\n")
    said = agent.fails(3, "hooks", "install", "--agent", "kimi")
    assert f"{file}, line 2" in said["message"]
    assert file.read_text("utf-8") == "a = 1\nhooks = []\n"


def test_opencode_is_told_the_truth(agent: Agent, home: Path) -> None:
    before = everything(home)
    for action in ("install", "status", "uninstall"):
        assert "no hook can hold it" in agent.ok("hooks", action, "--agent", "opencode")["message"]
    assert everything(home) == before


@pytest.mark.parametrize("name", HOSTS)
def test_the_trust_that_the_host_asks_for_is_named(agent: Agent, name: str) -> None:
    message = agent.ok("hooks", "install", "--agent", name)["message"]
    assert "Trust: " in message
    assert name != "codex" or "/hooks" in message


def test_no_trust_is_forged(agent: Agent, home: Path) -> None:
    config = put(home / ".codex" / "config.toml", 'model = "x"\n')
    agent.ok("hooks", "install", "--agent", "codex")
    assert config.read_text("utf-8") == 'model = "x"\n'
    assert "not trusted yet" in agent.ok("hooks", "status", "--agent", "codex")["message"]
    put(config, f'[hooks.state."{place(home, "codex")}:stop:0:0"]\ntrusted_hash = "sha256:x"\n')
    assert "not trusted" not in agent.ok("hooks", "status", "--agent", "codex")["message"]


def test_the_answer_is_bounded(agent: Agent, home: Path) -> None:
    many = {f"E{n}": [{"hooks": [{"type": "command", "command": "x" * 5000}]}] for n in range(500)}
    put(place(home, "claude"), json.dumps({"hooks": many}, indent=2))
    said = agent("hooks", "install", "--agent", "claude")
    assert len(said.text) < 50_000


@pytest.mark.parametrize("name", HOSTS)
def test_every_command_rings_and_is_silent_where_the_script_is_gone(name: str, tmp_path: Path) -> None:
    """As a host runs it: through `sh -c`, in a folder without a list."""
    host = hosts.HOSTS[name]
    assert hook_entries.wanted(host).keys() == set(host.events.values())
    weird = tmp_path / 'it\'s a "folder"'
    for script in (hook_entries.folder() / "harness-stop.py", weird / "hooks" / "harness-stop.py"):
        command = hook_entries.command(script, host)
        assert hook_entries.script_of(command) == script
        done = subprocess.run(
            ["sh", "-c", command], input=b"{}", capture_output=True, cwd=tmp_path, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_hooks_answer_in_the_dialect_of_every_host_they_are_installed_for() -> None:
    assert set(hosts.HOSTS) == set(dialect.HOSTS)


@pytest.mark.parametrize(
    "command",
    [
        "python3 hooks/harness-stop.py",
        'f=/x/hooks/other.py; [ ! -f "$f" ] || exec python3 -I -S "$f"',
        'f=/x/harness-stop.py; [ ! -f "$f" ] || exec python3 -I -S "$f"',
        'f=/x/hooks/harness-stop.py; [ ! -f "$f" ] || exec python3 -I -S "$f"; echo mine',
        'f=a b/hooks/harness-stop.py; [ ! -f "$f" ] || exec python3 -I -S "$f"',
        'f=\'; [ ! -f "$f" ] || exec python3 -I -S "$f"',
        None,
        7,
    ],
)
def test_what_is_not_spelled_as_ours_is_not_ours(command: object) -> None:
    assert hook_entries.script_of(command) is None


def test_gemini_waits_as_long_as_the_others(agent: Agent, home: Path) -> None:
    """Its unit is the millisecond."""
    agent.ok("hooks", "install", "--agent", "gemini")
    now = json.loads(place(home, "gemini").read_text("utf-8"))
    (entry,) = now["hooks"]["AfterAgent"]
    assert entry["hooks"][0]["timeout"] == 10_000


def test_a_moved_home_of_the_host_is_honoured(agent: Agent, tmp_path: Path) -> None:
    for name, variable, file in (
        ("codex", "CODEX_HOME", "hooks.json"),
        ("claude", "CLAUDE_CONFIG_DIR", "settings.json"),
    ):
        agent.ok("hooks", "install", "--agent", name, **{variable: str(tmp_path / name)})
        assert (tmp_path / name / file).is_file()


@pytest.mark.parametrize("answer", ["y", "n", ""])
def test_on_a_terminal_a_person_is_asked_first(agent: Agent, home: Path, answer: str) -> None:
    with typed(agent.cwd, "hooks", "install", "--agent", "codex") as (process, terminal):
        os.write(terminal, f"{answer}\n".encode())
        said = read_to_end(terminal)
        assert process.wait() == (0 if answer == "y" else 8)
    assert "Write this? [y/N]" in said
    assert "harness-stop.py" in said
    assert place(home, "codex").exists() == (answer == "y")


def test_install_needs_to_know_for_whom(agent: Agent) -> None:
    agent.fails(2, "hooks", "install")
    agent.fails(2, "hooks", "uninstall")
    agent.fails(2, "hooks", "install", "--agent", "emacs")
    assert "Claude Code: no hooks" in agent.ok("hooks")["message"]


def test_the_arguments_of_a_command_are_quoted() -> None:
    command = hook_entries.command(Path("/a b/$(x)/hooks/harness-stop.py"), hosts.CODEX)
    assert shlex.split(command.partition(";")[0])[0] == "f=/a b/$(x)/hooks/harness-stop.py"
    assert os.sep in command
