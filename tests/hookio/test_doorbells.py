"""The executables: alike, cheap, on a bare interpreter, and without a trace in the skill folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import harness_lib
from tests.hookio.conftest import CHECKOUT, EVENTS, HOOKS, ME, Ring, add, agent
from tests.hookio.hooks_json import CONFIG, commands
from tests.verbs.project import Project

DOORBELLS = sorted(HOOKS.glob("*.py"))


def test_there_is_one_for_each_event() -> None:
    assert [path.stem for path in DOORBELLS] == sorted(f"harness-{name}" for name in EVENTS)


def test_they_are_alike_but_for_the_docstring_and_one_word() -> None:
    bodies = set()
    for path in DOORBELLS:
        docstring, *lines = path.read_text(encoding="utf-8").splitlines()
        event = EVENTS[path.stem.partition("-")[2]]
        assert docstring.startswith('"""Rings ')
        assert lines.count(f'EVENT = "{event}"') == 1
        bodies.add("\n".join(lines).replace(f'"{event}"', "…"))

    assert len(bodies) == 1
    assert len(bodies.pop().splitlines()) < 25


def test_an_old_python_gets_one_clear_line_and_holds_nobody(tmp_path: Path) -> None:
    """No old Python is at hand, so one is told that it is."""
    source = DOORBELLS[0].read_text(encoding="utf-8")
    old = tmp_path / "old.py"
    old.write_text(source.replace("sys.version_info < (3, 10)", "sys.version_info < (9,)"), encoding="utf-8")

    done = subprocess.run([sys.executable, "-I", "-S", old], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (0, "", 1)
    assert "need Python 3.10 or newer" in done.stderr


def test_they_parse_on_the_oldest_python_one_may_meet() -> None:
    import ast  # noqa: PLC0415 (for this test only)

    for path in DOORBELLS:
        source = path.read_text(encoding="utf-8")
        ast.parse(source, feature_version=(3, 4))
        assert not any(word in source for word in (":=", "f'", 'f"', "async ", "->"))


def test_nothing_but_the_standard_library_is_loaded(project: Project) -> None:
    """A bare interpreter is enough for every event, the list decoded and not."""
    program = (
        "import runpy, sys\n"
        "try: runpy.run_path(sys.argv.pop(1), run_name='__main__')\n"
        "except SystemExit: pass\n"
        "tops = {name.partition('.')[0] for name in sys.modules}\n"
        "print(*(tops - sys.stdlib_module_names), file=sys.stderr)\n"
    )
    add(project, "One")
    agent(project).ok("start")
    for name, event in EVENTS.items():
        data = json.dumps({"session_id": ME, "cwd": str(project.top), "hook_event_name": event}).encode()
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, "-I", "-S", "-c", program, HOOKS / f"harness-{name}.py"],
                input=data,
                cwd=project.top,
                capture_output=True,
                check=True,
            )
            (project.top / ".harness" / "summary.json").unlink(missing_ok=True)
            assert set(done.stderr.decode().split()) <= {"__main__", "harness_lib"}, name


@pytest.mark.parametrize(
    "name",
    [
        "hookio/entry.py",
        "hookio/handler.py",
        "hookio/bug.py",
        "system/place/find_root.py",
        "system/place/data_home.py",
        "system/place/session_notes.py",
        "state/summary.py",
    ],
)
@pytest.mark.parametrize("state", ["missing", "torn", "of another version"])
def test_a_folder_that_is_not_whole_holds_nobody_and_says_so_in_one_line(
    project: Project, tmp_path: Path, name: str, state: str
) -> None:
    """As an update leaves it that was cut off."""
    skill = copied(tmp_path / "skill")
    broken = skill / "harness_lib" / name
    broken.unlink()
    if state != "missing":
        broken.write_text("def answer(" if state == "torn" else "", encoding="utf-8")
    if name == "hookio/bug.py":
        (skill / "harness_lib" / "hookio" / "handler.py").unlink()
    add(project, "One")
    agent(project).ok("start")
    data = json.dumps({"session_id": ME, "cwd": str(project.top), "hook_event_name": "Stop"}).encode()

    command: list[str | Path] = [sys.executable, "-I", "-S", skill / "hooks" / "harness-stop.py"]
    done = subprocess.run(command, input=data, cwd=project.top, capture_output=True, check=False)

    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.count(b"\n") == 1
    assert done.stderr.startswith(b"harness: ")


def test_two_installations_have_the_patience_of_one(project: Project, tmp_path: Path) -> None:
    """Skill and plugin are rung both at each stop, and a stop is one, however often it is told."""
    bells = [CHECKOUT / "hooks", copied(tmp_path / "plugin") / "hooks"]
    add(project, "One")
    agent(project).ok("start")
    data = json.dumps({"session_id": ME, "cwd": str(project.top), "hook_event_name": "Stop"}).encode()

    def stop(place: Path) -> bool:
        command: list[str | Path] = [sys.executable, "-I", "-S", place / "harness-stop.py"]
        done = subprocess.run(command, input=data, cwd=project.top, capture_output=True, check=True)
        return bool(done.stdout)

    assert [[stop(place) for place in bells] for _ in range(9)] == [[True, True]] * 8 + [[False, False]]


def copied(place: Path) -> Path:
    """Return a copy of the skill."""
    for name in ("hooks", "harness_lib", "schemas"):
        shutil.copytree(CHECKOUT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    return place


def test_nothing_is_written_into_the_skill_folder(project: Project, tmp_path: Path, home: Path) -> None:
    """Byte code goes to a place of ours, that nobody else can write, from the first visit on."""
    skill = copied(tmp_path / "skill")
    before = sorted(skill.rglob("*"))
    add(project, "One")
    agent(project).ok("start")
    for name, event in EVENTS.items():
        data = json.dumps({"session_id": ME, "cwd": str(project.top), "hook_event_name": event}).encode()
        command: list[str | Path] = [sys.executable, "-I", "-S", skill / "hooks" / f"harness-{name}.py"]
        subprocess.run(command, input=data, cwd=project.top, capture_output=True, check=False)

    assert sorted(skill.rglob("*")) == before
    data_home = home / "data" / "harness"
    assert data_home.stat().st_mode & 0o777 == 0o700
    assert list((data_home / "pycache").rglob("policy.*.pyc"))


def test_no_code_is_taken_from_a_place_that_others_can_write(
    ring: Ring, project: Project, home: Path
) -> None:
    add(project, "One")
    agent(project).ok("start")
    place = home / "data" / "harness"
    place.mkdir(parents=True)
    place.chmod(0o777)

    assert ring("stop", {}).reason
    assert not list(place.iterdir())


def test_a_visit_to_nowhere_makes_no_directory(ring: Ring, home: Path) -> None:
    assert ring("stop", {}).silent
    assert not (home / "data").exists()


def run(command: str, root: Path, data: bytes, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    """Run a command of hooks.json as Claude Code and Codex do."""
    env = {**os.environ, "CLAUDE_PLUGIN_ROOT": str(root)}
    return subprocess.run(
        ["/bin/sh", "-c", command], input=data, cwd=cwd, env=env, capture_output=True, check=False
    )


def test_hooks_json_rings_every_doorbell(project: Project) -> None:
    assert sorted(commands()) == sorted(EVENTS.values())
    add(project, "One")
    agent(project).ok("start")
    for event, command in commands().items():
        assert f"/hooks/harness-{event.lower()}.py" in command
        assert "python3 -I -S" in command
    data = json.dumps({"session_id": ME, "cwd": str(project.top), "hook_event_name": "Stop"}).encode()

    assert json.loads(run(commands()["Stop"], CHECKOUT, data, project.top).stdout)["decision"] == "block"


@pytest.mark.parametrize("event", EVENTS.values())
def test_a_missing_script_holds_nobody(event: str, tmp_path: Path) -> None:
    """Codex and Gemini take the exit code 2 of `python3 MISSING` as a block, for ever."""
    done = run(commands()[event], tmp_path / "gone", b"{}", tmp_path)

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_only_the_guard_refuses_by_failing_and_not_for_want_of_a_python(tmp_path: Path) -> None:
    """Without a Python every edit in every project would be refused."""
    refusing = [event for event, ((group),) in CONFIG["hooks"].items() if "onFailure" in group["hooks"][0]]
    env = {"PATH": str(tmp_path), "CLAUDE_PLUGIN_ROOT": str(CHECKOUT)}
    done = subprocess.run(
        ["/bin/sh", "-c", commands()["PreToolUse"]], input=b"{}", env=env, capture_output=True, check=False
    )

    assert refusing == ["PreToolUse"]
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_skill_folder_with_odd_characters_works(project: Project, tmp_path: Path) -> None:
    odd = tmp_path / 'it\'s $HOME & "more"'
    odd.symlink_to(CHECKOUT)
    add(project, "One")
    agent(project).ok("start")
    data = json.dumps({"session_id": ME, "cwd": str(project.top)}).encode()

    assert json.loads(run(commands()["Stop"], odd, data, project.top).stdout)["decision"] == "block"


def test_the_sign_of_life_does_not_make_the_agent_wait() -> None:
    (group,) = CONFIG["hooks"]["PostToolUse"]

    assert group["matcher"] == "Bash"
    assert group["hooks"][0]["async"] is True


@pytest.mark.parametrize("manifest", [".claude-plugin/plugin.json", ".codex-plugin/plugin.json"])
def test_the_manifests_carry_the_version_of_the_program(manifest: str) -> None:
    document = json.loads((CHECKOUT / manifest).read_text(encoding="utf-8"))

    assert (document["name"], document["version"]) == ("harness", harness_lib.__version__)


def test_the_marketplace_offers_this_folder() -> None:
    document = json.loads((CHECKOUT / ".claude-plugin/marketplace.json").read_text(encoding="utf-8"))

    assert [(each["name"], each["source"]) for each in document["plugins"]] == [("harness", "./")]
