"""The executables: alike, cheap, on a bare interpreter, and without a trace in the skill folder."""

from __future__ import annotations

import ast
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

import harness_lib
from harness_lib.hookio import policy
from harness_lib.system.place.roots import Root
from harness_lib.task import Task
from tests.conftest import for_release
from tests.hookio.conftest import CHECKOUT, EVENTS, HOOKS, executed
from tests.hookio.hooks_json import CONFIG, commands
from tests.hookio.lists import ME, keep, make
from tests.run_to_end import run_to_end

LEFT = Task("a")
DOORBELLS = sorted(HOOKS.glob("harness-*.py"))


def test_there_is_one_for_each_event() -> None:
    assert [path.stem for path in DOORBELLS] == sorted(f"harness-{name}" for name in EVENTS)


def test_they_are_alike_but_for_the_name_of_their_event() -> None:
    bodies = set()
    for path in DOORBELLS:
        event = EVENTS[path.stem.partition("-")[2]]
        source = path.read_text()
        assert source.count(f'EVENT = "{event}"') == 1
        bodies.add(source.replace(event, "…"))

    assert len(bodies) == 1


def test_an_old_python_gets_one_clear_line_and_holds_nobody(tmp_path: Path) -> None:
    """No old Python is at hand, so one is told that it is."""
    source = (HOOKS / "hook.py").read_text()
    old = source.replace("sys.version_info < (3, 10)", "sys.version_info < (9,)")
    (tmp_path / "hook.py").write_text(old)
    shutil.copy(DOORBELLS[0], tmp_path)

    done = executed(tmp_path / DOORBELLS[0].name, b"", tmp_path)

    assert (done.code, done.out, done.err.count("\n")) == (0, "", 1)
    assert "need Python 3.10 or newer" in done.err


@pytest.mark.parametrize("content", [None, b"import os, sys\nif sys.version_info <", b""])
def test_without_the_whole_of_what_they_run_they_hold_nobody(tmp_path: Path, content: bytes | None) -> None:
    """A traceback would end with 1, which refuses an edit in Claude Code."""
    shutil.copy(HOOKS / "harness-pretooluse.py", tmp_path)
    if content is not None:
        (tmp_path / "hook.py").write_bytes(content)

    assert executed(tmp_path / "harness-pretooluse.py", b"{}", tmp_path).silent


def test_they_parse_on_the_oldest_python_one_may_meet() -> None:
    for path in [*DOORBELLS, HOOKS / "hook.py"]:
        source = path.read_text()
        ast.parse(source, feature_version=(3, 4))
        assert not any(word in source for word in (":=", "f'", 'f"', "async ", "->"))


def sent(root: Root, event: str) -> bytes:
    return json.dumps({"session_id": ME, "cwd": str(root.path), "hook_event_name": event}).encode()


def test_nothing_but_the_standard_library_is_loaded(root: Root) -> None:
    """A bare interpreter is enough for every event, the list decoded and not."""
    program = (
        "import runpy, sys\n"
        "try: runpy.run_path(sys.argv.pop(1), run_name='__main__')\n"
        "except SystemExit: pass\n"
        "tops = {name.partition('.')[0] for name in sys.modules}\n"
        "print(*(tops - sys.stdlib_module_names), file=sys.stderr)\n"
    )
    make(root, LEFT)
    for _ in range(2):
        for name, event in EVENTS.items():
            command = [sys.executable, "-I", "-S", "-c", program, f"{HOOKS}/harness-{name}.py"]
            done = run_to_end(command, cwd=root.path, stdin=sent(root, event).decode(), check=True)
            assert set(done.stderr.split()) <= {"__main__", "harness_lib"}, name
        root.summary.unlink(missing_ok=True)


@pytest.mark.parametrize(
    "name",
    [
        "hookio/entry.py",
        "state/summary.py",
        *for_release(
            "hookio/handler.py",
            "system/place/find_root.py",
            "system/place/data_home.py",
            "system/place/own_files.py",
        ),
    ],
)
def test_a_folder_that_is_not_whole_holds_nobody_and_says_so(root: Root, skill: Path, name: str) -> None:
    """As an update leaves it that was cut off: a file is missing, torn, or of another version."""
    make(root, LEFT)
    library = skill / "harness_lib"
    broken = library / name
    whole = broken.read_bytes()
    for content in (None, b"def answer(", b""):
        broken.unlink()
        if content is not None:
            broken.write_bytes(content)
        heard = executed(skill / "hooks/harness-stop.py", sent(root, "Stop"), root.path)
        broken.write_bytes(whole)

        assert (heard.code, heard.out, heard.err.count("\n")) == (0, "", 1), content
        assert heard.err.startswith("harness: "), content


def test_two_installations_have_the_patience_of_one(root: Root, skill: Path) -> None:
    """Skill and plugin are rung both at each stop, and a stop is one, however often it is told."""
    bells = [HOOKS, skill / "hooks"]
    make(root, LEFT)
    for bell in bells:
        keep(root, f"{ME} {bell}", blocks=policy.PATIENCE - 1, progress="3:0 ")

    def stop(bell: Path) -> bool:
        return '"block"' in executed(bell / "harness-stop.py", sent(root, "Stop"), root.path).out

    assert [[stop(bell) for bell in bells] for _ in range(2)] == [[True, True], [False, False]]


def test_nothing_is_written_into_the_skill_folder(root: Root, skill: Path, home: Path) -> None:
    """Byte code goes to a place of ours, that nobody else can write, from the first visit on."""
    before = sorted(skill.rglob("*"))
    make(root, LEFT)
    for name, event in EVENTS.items():
        executed(skill / "hooks" / f"harness-{name}.py", sent(root, event), root.path)

    assert sorted(skill.rglob("*")) == before
    data_home = home / "data/harness"
    assert data_home.stat().st_mode & 0o777 == 0o700
    assert list((data_home / "pycache").rglob("policy.*.pyc"))


def run(event: str, plugin: Path, data: bytes, cwd: Path, **env: str) -> tuple[int, str, str]:
    """Run a command of hooks.json as Claude Code and Codex do."""
    variables = {**os.environ, "CLAUDE_PLUGIN_ROOT": str(plugin), **env}
    done = run_to_end(["/bin/sh", "-c", commands()[event]], cwd=cwd, env=variables, stdin=data.decode())
    return done.returncode, done.stdout, done.stderr


def test_hooks_json_starts_every_hook_script_also_in_an_oddly_named_folder(root: Root, home: Path) -> None:
    assert sorted(commands()) == sorted(EVENTS.values())
    make(root, LEFT)
    for event, command in commands().items():
        assert f"/hooks/harness-{event.lower()}.py" in command
        assert 'exec "${p:-python3}" -I -S' in command
    odd = home / 'it\'s $HOME & "more"'
    odd.symlink_to(CHECKOUT)

    for place in (CHECKOUT, odd):
        _, said, _ = run("Stop", place, sent(root, "Stop"), root.path)
        assert json.loads(said)["decision"] == "block"


@pytest.mark.parametrize("event", EVENTS.values())
def test_a_missing_script_holds_nobody(event: str, tmp_path: Path) -> None:
    """Codex and Gemini take the exit code 2 of `python3 MISSING` as a block, for ever."""
    assert run(event, tmp_path / "gone", b"{}", tmp_path) == (0, "", "")


def test_only_the_guard_refuses_by_failing_and_not_for_want_of_a_python(tmp_path: Path) -> None:
    """Without a Python every edit in every project would be refused."""
    refusing = [event for event, ((group),) in CONFIG["hooks"].items() if "onFailure" in group["hooks"][0]]

    assert refusing == ["PreToolUse"]
    assert run("PreToolUse", CHECKOUT, b"{}", tmp_path, PATH=str(tmp_path)) == (0, "", "")


def test_the_sign_of_life_does_not_make_the_agent_wait() -> None:
    (group,) = CONFIG["hooks"]["PostToolUse"]

    assert group["matcher"] == "Bash"
    assert group["hooks"][0]["async"] is True


@pytest.mark.parametrize("manifest", [".claude-plugin/plugin.json", ".codex-plugin/plugin.json"])
def test_the_manifests_carry_the_version_of_the_program(manifest: str) -> None:
    document = json.loads((CHECKOUT / manifest).read_text())

    assert (document["name"], document["version"]) == ("harness", harness_lib.__version__)


def test_the_marketplace_offers_this_folder() -> None:
    document = json.loads((CHECKOUT / ".claude-plugin/marketplace.json").read_text())

    assert [(each["name"], each["source"]) for each in document["plugins"]] == [("harness", "./")]
