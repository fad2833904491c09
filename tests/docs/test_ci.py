"""What CI, `bin/test --quick` and the benchmarks run is there, and runs as the pages say."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from benchmarks import table
from benchmarks.measuring import HEAD, Row
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


# About a quarter of an hour.
MOST_SECONDS = 18 * 60


def benchmark(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(CHECKOUT / "benchmarks" / "run.py"), *words]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False)


def test_all_measurements_are_listed_and_meant_to_take_about_a_quarter_of_an_hour() -> None:
    listed = benchmark("--list")
    assert listed.returncode == 0, listed.stderr
    assert "any verb at 100 tasks" in listed.stdout
    assert sum(int(line.split()[1]) for line in listed.stdout.splitlines()) < MOST_SECONDS


def test_a_row_that_there_is_not_measures_nothing_and_names_those_there_are() -> None:
    said = benchmark("--only", "no such row")
    assert said.returncode == 2
    assert "any verb at 100 tasks" in said.stdout


SETTLED = """
import subprocess, sys
from pathlib import Path
from benchmarks import projects, turns
home = Path(sys.argv[1])
projects.settle_in(home)
before = sorted((home / "data").iterdir())
for program in ("hs", "harness"):
    subprocess.run([sys.executable, "-I", "-S", f"bin/{program}", "--help"], check=True)
assert [path for path in sorted((home / "data").iterdir()) if path.name.startswith("env-")] == before
"""


@pytest.mark.release
def test_the_launchers_find_the_packages_of_a_benchmark_and_make_none(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SETTLED, str(tmp_path / "home")],
        cwd=CHECKOUT, env={**os.environ, "PYTHONPATH": str(CHECKOUT)}, capture_output=True, encoding="utf-8",
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


ROWS = [Row("this", "≤ 2", "1.00", met=True), Row("that", "", "3 ms")]
PAGE = "\n".join(["# Speed", "", *HEAD, *map(str, ROWS), "", "The end."])


def test_one_row_is_renewed_where_it_stands_and_a_new_one_comes_last() -> None:
    news = [Row("this", "≤ 2", "2.50", met=False), Row("more", "", "1")]
    page = table.renewed(PAGE, news, whole=False)
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert rows[1:] == ["| this | ≤ 2 | 2.50 | MISSED |", "| that |  | 3 ms |  |", "| more |  | 1 |  |"]
    assert page.endswith("\n\nThe end.\n")


def test_the_whole_measured_anew_leaves_no_old_row() -> None:
    page = table.renewed(PAGE, [Row("new", "", "1")], whole=True)
    assert [line for line in page.splitlines() if line.startswith("| ")] == [HEAD[0], "| new |  | 1 |  |"]


def test_a_page_without_the_table_is_left_alone() -> None:
    with pytest.raises(ValueError, match="no table"):
        table.renewed("# Nothing", ROWS, whole=True)


def test_the_page_of_the_project_has_the_table() -> None:
    page = (CHECKOUT / "docs" / "speed.md").read_text(encoding="utf-8")
    assert "| new |" in table.renewed(page, [Row("new", "", "1")], whole=False)


def test_what_quick_leaves_out_are_rooms_of_the_tests() -> None:
    script = (CHECKOUT / "bin" / "test").read_text(encoding="utf-8")
    (rooms,) = re.findall(r'^SLOW_ROOMS="(.+)"$', script, re.MULTILINE)
    assert all((CHECKOUT / "tests" / room).is_dir() for room in rooms.split())
