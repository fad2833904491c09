"""What CI and `bin/test --quick` run is there, and the jobs of docs/ci.md do what the page says."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.conftest import CHECKOUT, for_release
from tests.docs.pages import block
from tests.run_to_end import run_to_end
from tests.system.git.gitrepo import put, sh
from tests.verbs.conftest import Make, make_project

__all__ = ["make_project"]

GITHUB = yaml.safe_load(block("docs/ci.md", "GitHub Actions", "yaml"))["jobs"]["checks"]
GITLAB = yaml.safe_load(block("docs/ci.md", "GitLab", "yaml"))["harness"]
JOBS = {
    "github": (GITHUB["env"], GITHUB["steps"][-1]["run"]),
    "gitlab": ({**GITLAB["variables"]}, "\n".join(GITLAB["script"])),
}


def run(script: str, env: dict[str, str], cwd: Path, place: Path) -> subprocess.CompletedProcess[str]:
    """Run the lines of a step as a CI machine does, with `harness` of this checkout on the PATH."""
    program = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m harness_lib "$@"\n'
    put(place / "bin/harness", program, executable=True)
    own = {"PATH": f"{place}/bin:{os.environ['PATH']}", "HARNESS_HOME": str(place / "home")}
    return run_to_end(["bash", "-e", "-c", script], cwd=cwd, env={**os.environ, **env, **own})


@pytest.mark.parametrize("job", ["github", *for_release("gitlab")])
def test_a_job_passes_until_a_check_is_red(make_project: Make, tmp_path: Path, job: str) -> None:
    env, script = JOBS[job]
    project = make_project()
    agent = project.agent()
    agent.ok("add", "One", "--validate", "grep -q done f")
    agent.ok("start")
    agent.ok("claim")
    project.put("f", "done\n")
    agent.ok("finish")
    page = (CHECKOUT / "docs/ci.md").read_text()
    project.git(*page.split("```sh\n")[1].split("```")[0].split()[1:])
    project.git("commit", "-q", "-m", "The list")
    clone = tmp_path / "clone"
    sh(tmp_path, "clone", "-q", str(project.top), str(clone))

    assert run(script, {"HARNESS_TRUST": "0"}, clone, tmp_path).returncode == 8

    said = run(script, env, clone, tmp_path)

    assert said.returncode == 0, said.stdout + said.stderr
    assert "1 of 1 checks of completed tasks pass" in said.stdout
    sh(clone, "rm", "-q", "f")
    sh(clone, "commit", "-q", "-m", "Break it")
    said = run(script, env, clone, tmp_path)
    assert said.returncode == 1
    assert "red: task-001 One" in said.stdout


def test_what_quick_leaves_out_are_rooms_of_the_tests() -> None:
    script = (CHECKOUT / "bin/test").read_text()
    (rooms,) = re.findall(r'^SLOW_ROOMS="(.+)"$', script, re.MULTILINE)
    assert all((CHECKOUT / "tests" / room).is_dir() for room in rooms.split())


STORM = "tests/machines/test_weather.py"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Copy `bin/test` to a place where each program that it starts only notes its words in `typed`."""
    top, note = tmp_path / "copy", f'#!/bin/sh\necho "${{0##*/}} $*" >>{tmp_path}/typed\n'
    for program in ("python", "mypy", "ruff", "lint-imports"):
        put(top / ".venv/bin" / program, note, executable=True)
    put(top / "bin/mutate", note, executable=True)
    put(top / "pyproject.toml", "")
    version = subprocess.check_output(["python3", "-VV"], text=True)
    put(top / ".venv/recipe", f"{version}{top}\n")
    return Path(shutil.copy(CHECKOUT / "bin/test", top / "bin"))


@pytest.mark.parametrize(
    ("words", "alone"), [(("--release",), True), (("--release", "tests/machines"), False), ((), False)]
)
def test_a_whole_release_runs_the_storm_after_the_other_tests(
    script: Path, tmp_path: Path, words: tuple[str, ...], *, alone: bool
) -> None:
    subprocess.run([script, *words], check=True, capture_output=True, env={"PATH": os.environ["PATH"]})

    lines = (tmp_path / "typed").read_text().splitlines()
    others, *storm = [line.split() for line in lines if "pytest" in line]
    assert (f"--ignore={STORM}" in others) == alone
    assert others[-len(words) :] == list(words) or not words
    assert [each[-1] for each in storm if "-n" not in each] == [STORM] * alone
    assert any(line.startswith("mutate") for line in lines) == alone
