"""Read the output of test runners: the tests that failed, the lines that say why, and the closing report.

Code under test can end the test process with 0 (`os._exit(0)`). The report is required only if the
command surely is that runner and would surely print it: all else may be quiet for good reasons.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from harness_lib import typed
from harness_lib.text import cut

LIMIT = 2000
ONE_LINE = 420
ROW_LENGTH = 300
LAST_ROWS = 2
# More failures nobody reads, and no runner prints longer lines.
MOST = 200
LINE_LENGTH = 2000
CUT = "…"
# What a build tool says at its end of any failure.
_ALWAYS = (
    r"\[ERROR\] *(?:$|->|\[Help|Re-run|To see the full|For more info|After correcting|  mvn |Please refer)"
    r"|\* (?:Try:|Get more help)|(?:> )?Run with --|BUILD FAILED in|\d+ actionable task"
    r"|g?make(?:\[\d+\])?: |ninja: build stopped|Errors while running CTest|Output from these tests are in"
    r'|Use "--rerun-failed'
)
# At most so many lines are between the name of a test and its message. The end of a log has so many lines.
NEAR = 40
LAST = 30

Lines = Sequence[str]

# Patterns here are compiled when they are first used: most checks pass, and most verbs run none.
# A line that names a failure; some have its message, too.
_NAMES = (
    r"(?:FAILED|ERROR) (?P<name>\S*\.py\b.*?)(?: - (?P<message>.*))?",  # pytest
    r"_+ ERROR collecting (?P<name>\S+) _+",
    r"(?:FAIL|ERROR): (?P<name>\w+ \(.+\).*)",  # unittest
    r"  ● (?P<name>(?!Console\b).*)",  # jest
    r" FAIL  (?P<name>.*\S) *",  # vitest
    r" *--- FAIL: (?P<name>\S+) \([\d.]+s\)",  # go test
    r"(?:vet: )?(?P<name>\S+\.go:\d+:\d+): (?P<message>.*)",
    r"---- (?P<name>.*) stdout ----",  # cargo test
    r"(?P<message>error(?:\[E\d+\])?: .*)\n +--> (?P<name>\S+).*",
    r"(?P<name>\S.*?(?:\(\d+,\d+\)|:\d+:\d+))(?:: | - )error (?P<message>TS\d+: .*)",  # tsc
    r"(?P<name>\S.*?:\d+(?::\d+)?): (?:fatal )?(?P<message>error: .*)",  # gcc, clang, javac, mypy
    r"(?P<name>\S.*:\d+): (?:Failure|FAILED:)\n *(?P<message>\S.*)",  # GoogleTest, Catch2
    r"\s+\d+ - (?P<name>\S.*) \((?P<message>[A-Z][\w ]*)\)",  # ctest
    r"\[ERROR\]   (?P<name>\S+):\d+ (?P<message>.*)",  # Maven: its tests, and javac
    r"\[ERROR\] (?P<name>\S.*?:\[\d+,\d+\]) (?P<message>.*)",
    r"(?P<name>\S(?=.* > ).*\S) FAILED\n +(?P<message>\S.*)",  # Gradle
    r" *not ok \d+ - (?P<name>(?:(?! # (?i:TODO|SKIP)\b).)*)",  # TAP, of node --test too
    r"test at \S+:\d+:\d+\n\u2716 (?P<name>.*) \([\d.]+ms\)",  # node --test
)
# A line that says why.
_TELLING = (
    r"E  +\S|panic: |assert|called `|\s*(?:left|right|Expected|Received): |    expect\(|    E[A-Z]+: |[-+] \S"
    r"|    Cannot |    +\S+_test\.go:\d+: | *(?:\w+\.)*\w*(?:Error|Exception|Exit|Interrupt)(?:: | \[|$)"
    # Not the counts in the last lines of pytest.
    r"|(?![!=]).*\berror\b"
)
# Such a line goes on in the next one.
_OPEN = r"(?:: ?\|-|:)$"


class Failed(NamedTuple):
    """One failure: its name as its runner writes it, and the line that says why."""

    name: str
    message: str = ""


def failures(lines: Lines) -> list[Failed]:
    """Return the failures that any known runner reports in `lines` (plain text), each once, at most MOST."""
    bounded = [line[:LINE_LENGTH] for line in lines]
    found: dict[str, str] = {}
    for failed in islice(_named(bounded), MOST):
        found[failed.name] = found.get(failed.name) or failed.message
    return [Failed(name, message) for name, message in found.items()]


def _named(lines: Lines) -> Iterator[Failed]:
    for at, line in enumerate(lines):
        two = "\n".join(lines[at : at + 2])
        match = next(
            (found for each in _NAMES if (found := re.fullmatch(each, line) or re.fullmatch(each, two))), None
        )
        if match:
            message = match.groupdict().get("message") or _why(lines[at + 1 : at + NEAR])
            yield Failed(match["name"], message)


def _why(lines: Lines) -> str:
    """Return the first of `lines` that says why, and what follows where it ends with a colon."""
    start = next((at for at, row in enumerate(lines) if re.match(_TELLING, row)), len(lines))
    said = ""
    for row in filter(None, map(str.strip, lines[start:])):
        said = f"{said} {re.sub('^E  +', '', row)}".strip()
        if not re.search(_OPEN, said):
            break
        said = said.removesuffix("|-").strip()
    return said


def of(lines: Lines, limit: int = LIMIT) -> str:
    """Return the useful part of `lines` (the plain text of a log) in at most `limit` characters.

    That is what failed, the lines that say why, and the last ones.
    """
    rows = [cut(line, ROW_LENGTH) for line in lines if line.strip()]
    failed = [cut(each.name, ROW_LENGTH) for each in failures(lines)]
    names = _counted(failed, limit // 3, "\n") if failed else ""
    why = [row for row in rows[:-LAST] if re.match(_TELLING, row)] if failed else []
    why = _fitting(dict.fromkeys(why), limit // 3)
    room = limit - len("\n".join((names, *why))) - len(CUT) - 2
    last = _fitting(reversed(rows[-LAST:] if failed else rows), room)[::-1]
    gap = [CUT] if last and len(last) < len(rows) else []
    return "\n".join([*([names] if names else []), *why, *gap, *last])


def in_a_line(lines: Lines) -> str:
    """Return the most useful part of `lines`, without a line break."""
    failed = failures(lines)
    if failed:
        return _counted([": ".join(filter(None, each)) for each in failed], ONE_LINE, " / ")
    rows = [line.strip() for line in lines if line.strip()]
    return " / ".join(([row for row in rows if not re.match(_ALWAYS, row)] or rows)[-LAST_ROWS:])


def _counted(rows: Lines, limit: int, between: str) -> str:
    """Return as many of `rows` as fit, and how many more there are."""
    kept: list[str] = []
    room = limit - len(f"{CUT} and {len(rows)} more")
    for row in rows:
        room -= len(row) + len(between)
        if room < 0 and kept:
            return between.join([*kept, f"{CUT} and {len(rows) - len(kept)} more"])
        kept.append(row[:limit])
    return between.join(kept)


def _fitting(rows: Iterable[str], room: int) -> list[str]:
    kept = []
    for row in rows:
        room -= len(row) + 1
        if room < 0:
            break
        kept.append(row)
    return kept


# A longer log is cut in its middle, where the reports of earlier runners may have been.
WHOLE = 400_000


_PYTHON = r"(?:\S*/)?python(?:3(?:\.\d+)?)? -m "
# A path in the project may be a script of its own.
_BIN = r"(?:\S*venv/bin/)?"
_WRAPPERS = r"(?:(?:(?:uv|poetry|pipenv|pdm) run|npx|pnpm exec|yarn|bunx|env) )?"


class Runner(NamedTuple):
    """How a runner is called, what it prints at its end, its `options`, and `settings` that may silence it.

    All but the name are patterns; with another option it may print anything.
    """

    name: str
    call: str
    report: str
    options: str
    settings: str = r"(?!)"


_PYTEST = Runner(
    "pytest",
    rf"{_PYTHON}pytest|{_BIN}pytest",
    r"(?:^|\W)\d+ (?:passed|skipped|deselected|xfailed|xpassed|warnings?)\b|^=* ?no tests ran in ",
    r"-[vsxl]*q?[vsxl]*|-[kmrnWc].*|-p|--(?:maxfail|tb|cov|durations|timeout|lf|ff|"
    r"last-failed|failed-first|sw|strict|disable-warnings|import-mode|rootdir|junit|ignore|deselect|color|"
    r"no-header|no-cov|capture|dist|log-|basetemp|exitfirst|verbose|reruns|doctest-modules).*",
    r"(?s)addopts.{0,500}?(?:-\w*q|--quiet|-p\b|--tap|--json|--report)|console_output_style",
)
_UNITTEST = Runner(
    "unittest",
    rf"{_PYTHON}unittest",
    r"^Ran \d+ tests? in ",
    r"-[vqfbcs]+|-[kspt].*|--(?:verbose|quiet|locals|failfast|buffer)",
)
_NODE = Runner(
    "node --test",
    rf"{_BIN}node(?=.* --test(?: |$))",
    r"^(?:#|\u2139) tests \d+",
    r"--test|--test-(?:name-pattern|timeout|concurrency).*",
)
_JEST = Runner(
    "jest",
    rf"{_BIN}jest",
    r"^Tests: .*\d+ total|^Test Suites: .*\d+ total|^No tests found",
    r"--(?:ci|coverage|runInBand|silent|verbose|bail|passWithNoTests|maxWorkers|testPathPattern|testNamePattern"
    r"|no-cache|colors|forceExit).*|-[it]",
    "reporters",
)
_VITEST = Runner(
    "vitest",
    rf"{_BIN}vitest",
    r"^ *(?:Tests|Test Files) +\d+ |^No test files found",
    r"--(?:run|coverage|silent|bail|passWithNoTests|no-color|testNamePattern).*|-t",
    "reporter",
)
_GO = Runner(
    "go test",
    rf"{_BIN}go test",
    r"^(?:ok|\?|PASS)(?:\s|$)|no packages to test",
    r"-(?:v|race|count|run|short|cover|timeout|parallel|tags|p|failfast).*",
)
_CARGO = Runner(
    "cargo test",
    rf"{_BIN}cargo test",
    r"^test result: ",
    r"--(?:quiet|workspace|all|all-features|locked|offline|release|package|lib|verbose|features).*|-[qpvj].*|--",
)
_RUNNERS = (_PYTEST, _UNITTEST, _NODE, _JEST, _VITEST, _GO, _CARGO)


def missing_report(runners: Sequence[Runner], lines: Sequence[str], settings: str) -> str | None:
    """Return the name of the one of `runners` whose closing report `lines` lack; None if that is not certain.

    `settings` are the texts of its settings files.
    """
    for runner in set(runners):
        wanted = runners.count(runner) if sum(map(len, lines)) < WHOLE else 1
        found = sum(1 for line in lines if re.search(runner.report, line))
        if (found < wanted or _has_gap(runner, lines)) and not re.search(runner.settings, settings):
            return runner.name
    return None


def started_by(command: str) -> list[Runner]:
    """Return the runner of each simple command that is one; none if the shell decides what runs."""
    plain = re.sub(r"\s2>&1(?=\s|$)", " ", command.strip())
    if "`" in plain or "$" in plain:
        return []
    commands = typed.simple_commands(plain)
    if any(end not in ("&&", "") for _, end in commands):
        return []
    return [runner for words, _ in commands if (runner := _of(words))]


def _of(words: list[str]) -> Runner | None:
    """Return the runner that `words` start, unless they have unusual options."""
    while words and re.match(r"[A-Za-z_]\w*=", words[0]):
        words = words[1:]
    # A path may have blanks.
    line = " ".join(re.sub(r"\s", "_", word) for word in words)
    calls = ((each, re.match(rf"{_WRAPPERS}(?:{each.call})(?: |$)", line)) for each in _RUNNERS)
    runner, call = next(((each, match[0]) for each, match in calls if match), (None, ""))
    rest = words[len(call.split()) :]
    options = [word for word in rest if word.startswith("-")]
    quiet = sum(word == "--quiet" or bool(re.fullmatch(r"-[vsxl]*q[vsxl]*", word)) for word in options)
    plugins = [after for word, after in pairwise(rest) if word == "-p"]
    is_odd = quiet > 1 or (
        runner is _PYTEST and any(not re.match("no:(?!term)", plugin) for plugin in plugins)
    )
    if not runner or is_odd:
        return None
    return runner if all(re.fullmatch(runner.options, word) for word in options) else None


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
        elif re.search(runner.report, line):
            open_one = False
    return open_one
