"""Run the command of a check once, and return the result."""

from __future__ import annotations

from pathlib import Path

from harness_lib import typed
from harness_lib.checks import cannot_run
from harness_lib.checks.command import Command
from harness_lib.checks.protocol import Checked, Verdict, Worktree
from harness_lib.errors import ConfigError
from harness_lib.rules import reports, runners
from harness_lib.system.files import printed
from harness_lib.system.processes import environment, runner

# The first words of a recorded failure.
FAILED, DID_NOT, PRINTED = "The check failed", "The check did not", "The check printed"

NO_REPORT = "without the report that it closes with: what it tests may have ended it"
# Variables that can tell a runner to be quiet.
SETTINGS = (
    *("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "pyproject.toml", "tox.ini", "setup.cfg"),
    *("package.json", "jest.config.*", "vitest.config.*", "vite.config.*"),
)


def run(check: Command, worktree: Worktree) -> Checked:
    """Run `check` in `worktree`. Raises ConfigError if its directory is not in the work tree."""
    cwd = directory(check, worktree.top)
    command = check.text or ""
    env, without = environment.cleaned(worktree.env, worktree.top)
    missing = cannot_run.missing_program(command, cwd, env, worktree.top)
    if missing:
        where = " (not looked for in the work tree)" if "PATH" in without else ""
        has = cannot_run.who_has(missing, env, worktree.top)
        message = " ".join([f"Command not found: {missing}{where}.", *has])
        return Checked("ENV_SETUP", message, "", worktree.log, without=without)
    finished = runner.run(
        command,
        cwd=cwd,
        log=worktree.log,
        timeout=float(check.timeout_seconds),
        env={**env, **worktree.marks},
        on_tick=worktree.on_tick,
        tick=worktree.tick,
        clock=worktree.clock,
    )
    checked = _read(finished, check, worktree.log)
    if checked.verdict == "TEST_FAIL":
        why = cannot_run.reason(finished.returncode, finished.tail, cwd, env, worktree.top)
        checked = checked._replace(verdict="ENV_SETUP", message=why) if why else checked
    if checked.passed and (runner_name := _unreported(command, worktree.log, cwd, worktree.top)):
        message = f"{FAILED}: {runner_name} ended with exit code 0, but {NO_REPORT}."
        gist = runners.in_a_line(printed.ends_of(worktree.log))
        checked = Checked("TEST_FAIL", message, finished.tail, worktree.log, gist)
    return checked._replace(without=without, seconds=finished.seconds)


def _unreported(command: str, log: Path, cwd: Path, top: Path) -> str | None:
    """Return the test runner that should have printed a closing report and did not; None otherwise."""
    if not reports.is_expected(command):
        return None
    places = [cwd, *(place for place in cwd.parents if place.is_relative_to(top))]
    files = (file for place in places for glob in SETTINGS for file in sorted(place.glob(glob)))
    settings = "\n".join(file.read_text("utf-8", "replace") for file in files if file.is_file())
    return reports.missing(command, printed.ends_of(log), settings)


def directory(check: Command, top: Path) -> Path:
    """Return the directory of `check`. Raises ConfigError if it is not in the work tree at `top`."""
    path = (top / (check.cwd or "")).resolve()
    cure = f"Name a directory of the project: {typed.harness('edit', check.task, '--cwd', 'DIRECTORY')}"
    if path != top and top not in path.parents:
        raise ConfigError(f"Task {check.task}: validation.cwd {check.cwd!r} is outside of {top}.", cure)
    if not path.is_dir():
        raise ConfigError(f"Task {check.task}: validation.cwd {check.cwd!r} is no directory in {top}.", cure)
    return path


def _read(finished: runner.Finished, check: Command, log: Path) -> Checked:
    if finished.ok:
        return Checked("pass", f"The check passed in {finished.seconds:.1f} s.", finished.tail, log)
    verdict, message = _blame(finished, check)
    return Checked(verdict, message, finished.tail, log, runners.in_a_line(printed.ends_of(log)))


def _blame(finished: runner.Finished, check: Command) -> tuple[Verdict, str]:
    if finished.timed_out:
        return "TIMEOUT", f"{DID_NOT} end within {check.timeout_seconds} s."
    if finished.too_loud:
        return "TEST_FAIL", f"{PRINTED} without end and was stopped."
    return "TEST_FAIL", f"{FAILED} with exit code {finished.returncode}."
