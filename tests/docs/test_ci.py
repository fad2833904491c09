"""What CI and `bin/test --quick` run is there, and the jobs of docs/ci.md do what the page says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.conftest import CHECKOUT, for_release
from tests.docs.pages import block
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
    put(place / "bin/harness", program).chmod(0o755)
    env = {
        **os.environ,
        **env,
        "PATH": f"{place}/bin:{os.environ['PATH']}",
        "PYTHONPATH": str(CHECKOUT),
        "HARNESS_HOME": str(place / "home"),
    }
    return subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


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
    page = (CHECKOUT / "docs/ci.md").read_text(encoding="utf-8")
    sh(project.top, *page.split("```sh\n")[1].split("```")[0].split()[1:])
    sh(project.top, "commit", "-q", "-m", "The list")
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
    script = (CHECKOUT / "bin" / "test").read_text(encoding="utf-8")
    (rooms,) = re.findall(r'^SLOW_ROOMS="(.+)"$', script, re.MULTILINE)
    assert all((CHECKOUT / "tests" / room).is_dir() for room in rooms.split())
