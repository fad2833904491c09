"""Check that a test runner that ended with 0 has also printed its closing report.

Code under test can end the test process with 0 (`os._exit(0)`). The report is required only if the
command surely is that runner and would surely print it: all else may be quiet for good reasons.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

# A longer log is cut in its middle, where the reports of earlier runners may have been.
WHOLE = 400_000


class Runner(NamedTuple):
    """What a runner prints at its end; known `options`, and `settings` that may silence it."""

    name: str
    report: re.Pattern[str]
    options: re.Pattern[str]
    settings: re.Pattern[str]


def _runner(name: str, report: str, options: str, settings: str = r"(?!)") -> Runner:
    return Runner(name, re.compile(report), re.compile(options), re.compile(settings, re.DOTALL))


_PYTEST = _runner(
    "pytest",
    r"(?:^|\W)\d+ (?:passed|skipped|deselected|xfailed|xpassed|warnings?)\b|^=* ?no tests ran in ",
    r"-[vsxl]*q?[vsxl]*|-[kmrnWc].*|-p|--(?:maxfail|tb|cov|durations|timeout|lf|ff|"
    r"last-failed|failed-first|sw|strict|disable-warnings|import-mode|rootdir|junit|ignore|deselect|color|"
    r"no-header|no-cov|capture|dist|log-|basetemp|exitfirst|verbose|reruns|doctest-modules).*",
    r"addopts.{0,500}?(?:-\w*q|--quiet|-p\b|--tap|--json|--report)|console_output_style",
)
_UNITTEST = _runner(
    "unittest", r"^Ran \d+ tests? in ", r"-[vqfbcs]+|-[kspt].*|--(?:verbose|quiet|locals|failfast|buffer)"
)
_NODE = _runner(
    "node --test", r"^(?:#|\u2139) tests \d+", r"--test|--test-(?:name-pattern|timeout|concurrency).*"
)
_JEST = _runner(
    "jest",
    r"^Tests: .*\d+ total|^Test Suites: .*\d+ total|^No tests found",
    r"--(?:ci|coverage|runInBand|silent|verbose|bail|passWithNoTests|maxWorkers|testPathPattern|testNamePattern"
    r"|no-cache|colors|forceExit).*|-[it]",
    "reporters",
)
_VITEST = _runner(
    "vitest",
    r"^ *(?:Tests|Test Files) +\d+ |^No test files found",
    r"--(?:run|coverage|silent|bail|passWithNoTests|no-color|testNamePattern).*|-t",
    "reporter",
)
_GO = _runner(
    "go test",
    r"^(?:ok|\?|PASS)(?:\s|$)|no packages to test",
    r"-(?:v|race|count|run|short|cover|timeout|parallel|tags|p|failfast).*",
)
_CARGO = _runner(
    "cargo test",
    r"^test result: ",
    r"--(?:quiet|workspace|all|all-features|locked|offline|release|package|lib|verbose|features).*|-[qpvj].*|--",
)
_WRAPPERS = (
    *(("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("pdm", "run")),
    *(("npx",), ("pnpm", "exec"), ("yarn",), ("bunx",), ("env",)),
)
_MODULES = {"pytest": _PYTEST, "unittest": _UNITTEST}
_PROGRAMS = {
    "pytest": _PYTEST,
    "jest": _JEST,
    "vitest": _VITEST,
    "node": _NODE,
    "go": _GO,
    "cargo": _CARGO,
}
_OPERATORS = frozenset("();<>|&\n")


def missing(command: str, lines: Sequence[str], settings: str) -> str | None:
    """Return the runner whose closing report is missing in `lines`; None if that is not certain.

    `settings` are the texts of its settings files.
    """
    runners = _runners(command)
    for runner in set(runners):
        wanted = runners.count(runner) if sum(map(len, lines)) < WHOLE else 1
        found = sum(1 for line in lines if runner.report.search(line))
        if (found < wanted or _has_gap(runner, lines)) and not runner.settings.search(settings):
            return runner.name
    return None


def is_expected(command: str) -> bool:
    """Return whether `command` certainly runs a known runner."""
    return bool(_runners(command))


def _runners(command: str) -> list[Runner]:
    """Return the runner of each simple command that is one; none if the shell decides what runs."""
    plain = re.sub(r"\s2>&1(?=\s|$)", " ", command.strip())
    if "`" in plain or "$" in plain:
        return []
    lexer = shlex.shlex(plain, posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    commands: list[list[str]] = [[]]
    try:
        for word in lexer:
            if word == "&&":
                commands.append([])
            elif word and set(word) <= _OPERATORS:
                return []
            else:
                commands[-1].append(word)
    except ValueError:
        # An unclosed quote: the shell will report it.
        return []
    return [runner for words in commands if (runner := _of(words)) is not None]


def _of(words: list[str]) -> Runner | None:
    """Return the runner that `words` start, unless they have unusual options."""
    runner, rest = _named(_unwrapped(words))
    options = [word for word in rest if word.startswith("-")]
    quiet = sum(word == "--quiet" or bool(re.fullmatch(r"-[vsxl]*q[vsxl]*", word)) for word in options)
    plugins = [after for word, after in pairwise(rest) if word == "-p"]
    is_odd = quiet > 1 or (
        runner is _PYTEST and any(not re.match("no:(?!term)", plugin) for plugin in plugins)
    )
    if runner is None or is_odd:
        return None
    return runner if all(runner.options.fullmatch(word) for word in options) else None


def _unwrapped(words: list[str]) -> list[str]:
    """Return `words` without leading settings and without a program that only wraps another one."""
    while words and re.match(r"[A-Za-z_]\w*=", words[0]):
        words = words[1:]
    wrapper = next((each for each in _WRAPPERS if tuple(words[: len(each)]) == each), ())
    return words[len(wrapper) :]


def _named(words: list[str]) -> tuple[Runner | None, list[str]]:
    """Return the runner that `words` name, and its arguments."""
    program, rest = (words or [""])[0], words[1:]
    if re.fullmatch(r"(?:.*/)?python(?:3(?:\.\d+)?)?", program):
        return (_MODULES.get(rest[1]), rest[2:]) if rest[:1] == ["-m"] and rest[1:] else (None, [])
    # A path in the project may be a script of its own.
    name = program.rpartition("/")[2] if "/" not in program or "venv/bin/" in program else ""
    if name in ("go", "cargo", "node"):
        is_test = rest[:1] == ["test"] if name != "node" else "--test" in rest
        return (_PROGRAMS[name], rest[name != "node" :]) if is_test else (None, [])
    return _PROGRAMS.get(name), rest


def _has_gap(runner: Runner, lines: Sequence[str]) -> bool:
    """Return whether a crate's own tests began and did not report before the next program began."""
    if runner is not _CARGO:
        return False
    open_one = False
    for line in lines:
        if re.match(r" +(?:Running|Doc-tests) ", line):
            if open_one:
                return True
            open_one = "Running unittests " in line
        elif runner.report.search(line):
            open_one = False
    return open_one
