"""Whatever the machine's Python has in its site-packages, harness runs, and all that it starts does too."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import tomlkit

from harness_lib import __version__
from harness_lib.system.install import launcher
from tests.conftest import MakeRepo
from tests.launcher.launching import CHECKOUT, run
from tests.run_to_end import Said
from tests.system.git.gitrepo import put

RAISES = "raise RuntimeError('not this one')\n"
# What stands in the site-packages of the machine's Python: where any of them is imported, it says so.
FOREIGN = {
    "sitecustomize.py": "print('welcome to this machine')\n",
    "jsonschema/__init__.py": RAISES,
    "filelock.py": RAISES,
    "referencing.py": RAISES,
    "rich/__init__.py": RAISES,
}


@dataclass(frozen=True)
class World:
    """A machine, and the `harness` that is typed on it."""

    command: Path
    env: dict[str, str]

    def harness(self, *words: str, cwd: Path) -> Said:
        return run(self.command, *words, env=self.env, cwd=cwd)


def foreign_python(place: Path) -> Path:
    """Make a Python with foreign packages; return the directory to be put on the PATH."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    (packages,) = place.glob("lib/python*/site-packages")
    for name, text in FOREIGN.items():
        put(packages / name, text)
    return place / "bin"


@pytest.fixture
def world(tmp_path: Path, shared: dict[str, str], home: Path) -> World:
    """Return a checkout on such a machine; its private environment is made already."""
    launcher = CHECKOUT / "bin/harness"
    assert run(launcher, "--version", env=shared).code == 0
    folder = foreign_python(tmp_path / "machine")
    return World(launcher, {**shared, "HOME": str(home), "PATH": f"{folder}:{os.environ['PATH']}"})


@pytest.fixture
def installed_world(installed: Path, tmp_path: Path, home: Path) -> World:
    folder = foreign_python(tmp_path / "machine")
    hostile = tmp_path / "on the pythonpath"
    for name in FOREIGN.keys() - {"sitecustomize.py"}:
        put(hostile / name, RAISES)
    path = f"{folder}:{os.environ['PATH']}"
    return World(installed / "bin/harness", {"HOME": str(home), "PATH": path, "PYTHONPATH": str(hostile)})


def test_a_verb_a_hook_and_workers_run_beside_them(world: World, make_repo: MakeRepo) -> None:
    """One test for all: the machine is made once."""
    two_workers_do_two_tasks(world, make_repo("project"))
    a_hook_holds(world, make_repo("hooked"))


@pytest.mark.release
def test_installed_by_pip_it_runs_without_more(installed_world: World, make_repo: MakeRepo) -> None:
    """Neither the `python3` of the PATH nor what PYTHONPATH names is asked for anything."""
    two_workers_do_two_tasks(installed_world, make_repo("project"))
    said = installed_world.harness("demo", "--json", cwd=make_repo("demo"))
    assert said.code == 0, said.out + said.err
    assert json.loads(said.out)["broken"] == []


def two_workers_do_two_tasks(world: World, project: Path) -> None:
    world.harness("init", cwd=project)
    for name in ("one", "two"):
        world.harness("add", name, "--validate", f"test -f {name}.txt", cwd=project)
    agent = "case $HARNESS_TASK_ID in task-001) touch one.txt;; *) touch two.txt;; esac"
    said = world.harness("run", "-j", "2", "--agent-command", agent, cwd=project)
    assert said.code == 0, said.out + said.err
    assert "Traceback" not in said.out + said.err
    status = json.loads(world.harness("status", "--json", cwd=project).out)
    assert status["counts"]["completed"] == 2


def a_hook_holds(world: World, project: Path) -> None:
    """Look at a list that somebody else wrote, which is when hooks want jsonschema, too."""
    world.harness("init", cwd=project)
    tasks = [{"id": "task-001", "title": "One", "status": "pending"}]
    (project / "harness-tasks.json").write_text(json.dumps({"tasks": tasks}))
    hook = f"exec python3 -I -S {shlex.quote(str(CHECKOUT / 'hooks/harness-stop.py'))}"
    event = json.dumps({"hook_event_name": "Stop", "session_id": "s", "cwd": str(project)})
    said = run("/bin/sh", "-c", hook, env=world.env, stdin=event)
    assert (said.code, said.err) == (0, "")
    assert said.json["decision"] == "block"


# -- installed as a package it is whole: every module, the schemas, and the command


def files(folder: Path) -> set[str]:
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {str(path) for path in paths if "__pycache__" not in path.parts}


@pytest.mark.release
def test_an_installed_harness_is_whole_and_runs_anywhere(installed: Path, tmp_path: Path) -> None:
    (package,) = installed.glob("lib/python*/site-packages/harness_lib")
    schemas = {f"schemas/{name}" for name in files(CHECKOUT / "schemas")}
    assert files(package) == files(CHECKOUT / "harness_lib") | schemas
    said = run(installed / "bin/harness", "--version", env={}, cwd=tmp_path)
    assert said.code == 0, said.err
    assert __version__ in said.out


def test_uv_builds_the_package_anew_where_any_file_of_it_has_changed() -> None:
    """By itself it takes what it has built of a checkout as long as `pyproject.toml` stays as it is."""
    keys = tomlkit.parse((CHECKOUT / "pyproject.toml").read_text()).unwrap()["tool"]["uv"]["cache-keys"]
    watched = {str(path.relative_to(CHECKOUT)) for key in keys for path in CHECKOUT.glob(key["file"])}

    parts = {f"{name}/{file}" for name in ("harness_lib", "schemas") for file in files(CHECKOUT / name)}
    assert {"pyproject.toml", *parts} <= watched


@pytest.mark.parametrize(
    ("field", "found"), [("dependencies", launcher.DEPENDENCIES), ("hs", launcher.DEPENDENCIES_OF_HS)]
)
def test_a_child_finds_every_package_that_is_needed(field: str, found: tuple[str, ...]) -> None:
    """Also where pip has put them into several directories."""
    text = (CHECKOUT / "pyproject.toml").read_text()
    packages = re.findall(r'^  "([\w-]+)', text.split(f"\n{field} = [\n")[1].split("\n]")[0], re.MULTILINE)
    modules = {"agent-client-protocol": "acp", "markdown-it-py": "markdown_it", "PyYAML": "yaml"}

    assert {modules.get(name, name) for name in packages} <= set(found)
