"""Run the command of a check once, and tell a check that fails from one that cannot run on this machine.

A missing file of the project is never an error of the machine: the attempt may still have to write it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from harness_lib import typed
from harness_lib.checks import Checked, ShellCheck, Verdict, Worktree
from harness_lib.errors import ConfigError, EnvSetupError, NoPlaceError
from harness_lib.rules import input_files, runners
from harness_lib.system.git.repository import Git
from harness_lib.system.processes import child, denied, environment, runner

# The first words of a recorded failure.
FAILED, DID_NOT, PRINTED = "The check failed", "The check did not", "The check printed"

NO_REPORT = "without its closing report: the code that it tests may have ended it"


def run(check: ShellCheck, worktree: Worktree) -> Checked:
    """Run `check` in `worktree`. Raises ConfigError if its directory is not in the work tree."""
    cwd = directory(check, worktree.top)
    command = check.text or ""
    env, without = environment.cleaned(worktree.env, worktree.top)
    env = environment.with_paths(env, worktree.first)
    missing = environment.missing_command(command, cwd=cwd, env=env)
    if missing and not is_of_project(missing, cwd, worktree.top):
        where = " (not looked for in the work tree)" if "PATH" in without else ""
        has = who_has(missing, env, worktree.top)
        message = " ".join([f"Command not found: {missing}{where}.", *has])
        return Checked("ENV_SETUP", message, "", worktree.log, without=without)
    finished = runner.run(
        command,
        cwd=cwd,
        log=worktree.log,
        timeout=float(check.timeout_seconds),
        env={**env, environment.CHECKED: check.task},
        on_tick=worktree.watch.goes_on,
        tick=worktree.watch.seconds,
        clock=worktree.clock,
    )
    verdict, message = _verdict(finished, check)
    gist = "" if verdict == "pass" else runners.in_a_line(runner.ends_of(worktree.log))
    checked = Checked(verdict, message, finished.tail, worktree.log, gist)
    if checked.verdict == "TEST_FAIL":
        why = reason(finished.returncode, finished.tail, cwd, env, worktree.top)
        why = why or denied.said(finished.tail, env, cwd)
        checked = checked._replace(verdict="ENV_SETUP", message=why) if why else checked
    if checked.passed and (runner_name := _unreported(command, worktree.log, cwd, worktree.top)):
        message = f"{FAILED}: {runner_name} ended with exit code 0, but {NO_REPORT}."
        gist = runners.in_a_line(runner.ends_of(worktree.log))
        checked = Checked("TEST_FAIL", message, finished.tail, worktree.log, gist)
    return checked._replace(without=without, seconds=finished.seconds)


def _unreported(command: str, log: Path, cwd: Path, top: Path) -> str | None:
    """Return the test runner that should have printed a closing report and did not; None otherwise."""
    started = runners.started_by(command)
    if not started:
        return None
    places = [cwd, *(place for place in cwd.parents if place.is_relative_to(top))]
    # What can tell a runner to be quiet.
    globs = [glob for glob in input_files.of(command).config if "/" not in glob]
    files = (file for place in places for glob in globs for file in sorted(place.glob(glob)))
    settings = "\n".join(file.read_text("utf-8", "replace") for file in files if file.is_file())
    return runners.missing_report(started, runner.ends_of(log), settings)


def directory(check: ShellCheck, top: Path) -> Path:
    """Return the directory of `check`.

    Raises ConfigError if it is outside of the work tree at `top`, NoPlaceError if it is not there.
    """
    path = (top / (check.cwd or "")).resolve()
    is_inside = path == top or top in path.parents
    if is_inside and path.is_dir():
        return path
    # A task that is tried before it is added has no id yet.
    of_task = f"Task {check.task}: validation.cwd" if check.task else "--cwd"
    change = typed.harness("edit", check.task, "--cwd", "DIRECTORY") if check.task else "--cwd DIRECTORY"
    wrong, error = ("not a directory", NoPlaceError) if is_inside else ("outside", ConfigError)
    raise error(
        f"{of_task} {check.cwd!r} is {wrong} of the project.", f"Name a directory of the project: {change}"
    )


def _verdict(finished: runner.Finished, check: ShellCheck) -> tuple[Verdict, str]:
    if finished.returncode == 0:
        return "pass", f"The check passed in {finished.seconds:.1f} s."
    if finished.timed_out:
        return "TIMEOUT", f"{DID_NOT} end within {check.timeout_seconds} s."
    if finished.too_loud:
        return "TEST_FAIL", f"{PRINTED} too much and was stopped."
    if finished.returncode is not None and finished.returncode < 0:
        return "TEST_FAIL", f"{FAILED}: signal {-finished.returncode} ended it."
    return "TEST_FAIL", f"{FAILED} with exit code {finished.returncode}."


COMMAND_NOT_FOUND = 127
# The most interpreters that are asked for a module.
ASKED = 6
VIRTUAL_ENVIRONMENTS = (".venv/bin/python", "venv/bin/python")
PYTHONS = ("python3", "python")
# Test runners that are Python modules.
MODULES = frozenset(
    (
        *("pytest", "tox", "nox", "coverage", "hatch", "mypy"),
        *("ruff", "black", "flake8", "pylint", "behave", "nose2"),
    )
)
PLUGIN = "pytest_"
_ASKS = "import importlib.util as u, sys; print(sys.version.split()[0], u.find_spec(sys.argv[1]) is not None)"
_SECONDS = 20.0

_MAKE = re.compile(r"g?make(?:\[\d+\])?: .*\bError (\d+)")
_NOT_FOUND = re.compile(
    r"(?:.*: )?['\u2018]?(?P<word>[^\s:'\u2019]+)['\u2019]?"
    r": (?:command not found|not found|No such file or directory)"
    r"|.*command not found: (?P<zsh>\S+)"
)
_LACKS = re.compile(
    r"(?:E +)?(?:(?P<python>/.*?): |ModuleNotFoundError: |ImportError: .*)"
    r"No module named '?(?P<module>[\w.]+)'?"
)


class Interpreter(NamedTuple):
    """The version of a Python, and whether it can import the module in question."""

    version: str
    has_module: bool


def reason(returncode: int | None, tail: str, cwd: Path, env: environment.Env, top: Path) -> str | None:
    """Return why a check that ended with `returncode` could not run here; None if it has failed.

    `tail` is the end of its output.
    """
    code, last = _last_line(returncode, tail)
    if code == COMMAND_NOT_FOUND:
        said = _NOT_FOUND.fullmatch(last)
        word = said and (said["word"] or said["zsh"])
        if word and is_of_project(word, cwd, top):
            return None
        named = f": {word}" if word else ""
        text = f"The check ended with 127: a command was not found{named}."
        return " ".join([text, *who_has(word, env, top)])
    lacks = _LACKS.fullmatch(last)
    module = lacks["module"] if lacks else ""
    runs_checks = module in MODULES or module.startswith(PLUGIN)
    if not lacks or not runs_checks or _is_module_of_project(module, cwd, top):
        return None
    found = dict(_ask(module, [lacks["python"]] if lacks["python"] else [], env, top))
    ran = [found[lacks["python"]]] if lacks["python"] in found else list(found.values())
    if not ran or all(each.has_module for each in ran):
        return None
    return f"No module named {module}: {'; '.join(_words(found, module))}."


def who_has(word: str | None, env: environment.Env, top: Path) -> Iterator[str]:
    """If `word` is a Python or one of its test runners, yield a sentence that names the interpreters."""
    if word is None or not (word in MODULES or re.fullmatch(r"python[\d.]*", word)):
        return
    module = word if word in MODULES else "pytest"
    found = dict(_ask(module, [], env, top))
    if found:
        yield f"{'; '.join(_words(found, module))}."


def _last_line(returncode: int | None, tail: str) -> tuple[int | None, str]:
    """Return the exit code and last line of the command; under make, those of the program that make ran."""
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    while lines and (said := _MAKE.fullmatch(lines[-1])):
        returncode = int(said[1])
        lines.pop()
    return returncode, lines[-1] if lines else ""


def is_of_project(word: str, cwd: Path, top: Path) -> bool:
    """Return whether `word` names a missing file of the work tree at `top` that git would keep."""
    path = Path(os.path.normpath(cwd / word))
    if "/" not in word or path.exists() or not path.is_relative_to(top):
        return False
    try:
        ignored = Git.open(top).run("check-ignore", "-q", "--", str(path), check=False)
    except EnvSetupError:
        return True
    return ignored.returncode != 0


def _is_module_of_project(module: str, cwd: Path, top: Path) -> bool:
    name = module.partition(".")[0]
    places = (place / name for place in (cwd, top, cwd / "src", top / "src"))
    return any(place.is_dir() or place.with_suffix(".py").is_file() for place in places)


def _ask(module: str, first: list[str], env: environment.Env, top: Path) -> Iterator[tuple[str, Interpreter]]:
    """Yield the interpreters of `env` and the project that run, each with its answer about `module`."""
    entries = env.get("PATH", os.defpath).split(os.pathsep)
    on_path = [f"{entry}/{name}" for entry in entries for name in PYTHONS if entry.startswith("/")]
    own = [str(top / name) for name in VIRTUAL_ENVIRONMENTS]
    there = [path for path in dict.fromkeys((*first, *own, *on_path)) if os.access(path, os.X_OK)]
    for path in there[:ASKED]:
        asked = [path, "-c", _ASKS, module.partition(".")[0]]
        try:
            answer = child.ask(asked, env=env, cwd=Path("/"), seconds=_SECONDS)
        except OSError:
            continue
        version, _, has_module = answer.output.strip().partition(" ")
        if answer.code == 0:
            yield path, Interpreter(version, has_module == "True")


def _words(found: Mapping[str, Interpreter], module: str) -> Iterator[str]:
    """Yield sentences: which interpreter lacks `module`, and which ones have it."""
    without = [f"{path} ({each.version})" for path, each in found.items() if not each.has_module]
    having = [f"{path} ({each.version})" for path, each in found.items() if each.has_module]
    if without:
        yield f"{without[0]} has no module {module}"
    yield (
        f"{' and '.join(having[:2])} {'have' if having[1:] else 'has'} it" if having else "nor has any other"
    )
