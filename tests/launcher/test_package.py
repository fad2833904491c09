"""Installed as a package, harness is whole: every module, the schemas, and the command."""

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
from tests.launcher.launching import CHECKOUT, Run, run


def python_modules(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*.py")}


def test_every_folder_and_every_file_that_is_no_module_is_packaged() -> None:
    """That what is packaged is there once it is installed is tried in a release."""
    text = (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
    packaging = tomlkit.parse(text).unwrap()["tool"]["setuptools"]
    library = CHECKOUT / "harness_lib"
    files = [path for path in library.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    modules = {path.parent for path in files if path.suffix == ".py" and "bundled" not in path.parts}
    data = {
        path
        for package, patterns in packaging["package-data"].items()
        for pattern in patterns
        for path in (CHECKOUT / package.replace(".", "/")).glob(pattern)
    }

    names = {".".join(folder.relative_to(CHECKOUT).parts) for folder in modules}
    assert set(packaging["packages"]) == {*names, "harness_lib.schemas"}
    assert [
        path for path in files if path.parent not in modules or path.suffix != ".py" if path not in data
    ] == []


@pytest.mark.release
def test_an_installed_harness_is_whole_and_runs_anywhere(installed: Path, tmp_path: Path) -> None:
    (package,) = installed.glob("lib/python*/site-packages/harness_lib")
    assert python_modules(package) == python_modules(CHECKOUT / "harness_lib")
    for schema in (CHECKOUT / "schemas").glob("*.json"):
        assert (package / "schemas" / schema.name).read_bytes() == schema.read_bytes()
    assert (package / "system" / "install" / "requirements.txt").exists()
    said = run(installed / "bin" / "harness", "--version", env={}, cwd=tmp_path)
    assert said.code == 0, said.err
    assert __version__ in said.out


def test_a_child_finds_every_package_that_hs_names() -> None:
    text = (CHECKOUT / "pyproject.toml").read_text(encoding="utf-8")
    packages = re.findall(r'^  "([\w-]+)', text.split("\nhs = [\n")[1].split("\n]")[0], re.MULTILINE)
    modules = {"agent-client-protocol": "acp", "PyYAML": "yaml"}

    assert {modules.get(name, name) for name in packages} <= set(launcher.DEPENDENCIES_OF_HS)


# -- whatever the machine's Python has in its site-packages, harness runs, and all that it starts does too


OLD_FILELOCK = """\
__version__ = "3.0.12"

class Timeout(TimeoutError):
    pass

class FileLock:
    def __init__(self, lock_file, timeout=-1):
        raise RuntimeError("the machine's filelock is used")
"""
OLD_JSONSCHEMA = """\
__version__ = "3.2.0"

class Draft7Validator:
    pass
"""
RAISES = "raise RuntimeError('not this one')\n"
# What stands in the site-packages of each Python.
WORLDS = {
    "jsonschema alone": {"jsonschema/__init__.py": ""},
    "an old filelock": {"filelock.py": OLD_FILELOCK},
    "a rich that raises": {"rich/__init__.py": RAISES},
    "old packages": {"jsonschema/__init__.py": OLD_JSONSCHEMA, "filelock.py": OLD_FILELOCK},
    "all that raises, and a sitecustomize that prints": {
        "sitecustomize.py": "print('welcome to this machine')\n",
        "jsonschema/__init__.py": RAISES,
        "filelock.py": RAISES,
        "referencing.py": RAISES,
        "rich/__init__.py": RAISES,
    },
}


@dataclass(frozen=True)
class World:
    """A machine, and the `harness` that is typed on it."""

    command: Path
    env: dict[str, str]

    def harness(self, *words: str, cwd: Path) -> Run:
        return run(self.command, *words, env=self.env, cwd=cwd)


def foreign_python(place: Path, files: dict[str, str]) -> Path:
    """Make a Python with `files` in its site-packages; return the directory to be put on the PATH."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    (packages,) = place.glob("lib/python*/site-packages")
    for name, text in files.items():
        (packages / name).parent.mkdir(exist_ok=True)
        (packages / name).write_text(text, encoding="utf-8")
    return place / "bin"


# Where any of them is imported, this one says so.
WORST = "all that raises, and a sitecustomize that prints"


@pytest.fixture(
    params=[name if name == WORST else pytest.param(name, marks=pytest.mark.release) for name in WORLDS]
)
def world(request: pytest.FixtureRequest, tmp_path: Path, shared: dict[str, str], home: Path) -> World:
    """Return a checkout on a machine of each kind; its private environment is made already."""
    launcher = CHECKOUT / "bin" / "harness"
    assert run(launcher, "--version", env=shared).code == 0
    folder = foreign_python(tmp_path / "machine", WORLDS[request.param])
    return World(launcher, {**shared, "HOME": str(home), "PATH": f"{folder}:{os.environ['PATH']}"})


@pytest.fixture
def installed_world(installed: Path, tmp_path: Path, home: Path) -> World:
    folder = foreign_python(tmp_path / "machine", WORLDS[WORST])
    hostile = tmp_path / "on the pythonpath"
    for name in WORLDS[WORST].keys() - {"sitecustomize.py"}:
        (hostile / name).parent.mkdir(parents=True, exist_ok=True)
        (hostile / name).write_text(RAISES, encoding="utf-8")
    path = f"{folder}:{os.environ['PATH']}"
    return World(installed / "bin" / "harness", {"HOME": str(home), "PATH": path, "PYTHONPATH": str(hostile)})


class TestForeignPackages:
    """One test for all: the machine is made once."""

    def test_a_verb_a_hook_and_workers_run_beside_them(self, world: World, make_repo: MakeRepo) -> None:
        two_workers_do_two_tasks(world, make_repo("project"))
        a_hook_holds(world, make_repo("hooked"))

    @pytest.mark.release
    def test_installed_by_pip_it_runs_without_more(self, installed_world: World, make_repo: MakeRepo) -> None:
        """Neither the `python3` of the PATH nor what PYTHONPATH names is asked for anything."""
        two_workers_do_two_tasks(installed_world, make_repo("project"))

    @pytest.mark.release
    def test_installed_by_pip_its_demo_is_as_promised(self, installed_world: World, repo: Path) -> None:
        said = installed_world.harness("demo", "--json", cwd=repo)
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
    (project / "harness-tasks.json").write_text(json.dumps({"tasks": tasks}), encoding="utf-8")
    hook = CHECKOUT / "hooks" / "harness-stop.py"
    said = run(
        "/bin/sh",
        "-c",
        f"exec python3 -I -S {shlex.quote(str(hook))}",
        env=world.env,
        stdin=json.dumps({"hook_event_name": "Stop", "session_id": "s", "cwd": str(project)}),
    )
    assert said.code == 0, said.err
    assert said.err == ""
    assert json.loads(said.out)["decision"] == "block"
