"""A known runner must have said that it came to its end; of anything else nothing is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.rules import runners
from harness_lib.system.files import printed

OUTPUTS = Path(__file__).with_name("outputs")
REPORTED = {
    "pytest -q": "..\n2 passed in 0.01s",
    "MAX=1 pytest": "=== 1 passed, 1 skipped in 0.02s ===",
    "python3 -m pytest -q -p no:cacheprovider tests/test_a.py": "1 passed in 0.01s",
    "cd app && uv run pytest -x --tb=short 2>&1": "no tests ran in 0.01s",
    ".venv/bin/pytest -k 'not slow'": "3 deselected in 0.01s",
    "python -m unittest -q": "-----\nRan 3 tests in 0.001s\n\nOK",
    "python -m unittest discover -s tests": "Ran 1 test in 0.001s\n\nOK (skipped=1)",
    "node --test": "# tests 2\n# pass 2",
    "node --test tests": "\u2139 tests 2\n\u2139 pass 2",
    "npx jest --ci": "Test Suites: 1 passed, 1 total\nTests:       1 passed, 1 total",
    "npx vitest run": " Test Files  1 passed (1)\n      Tests  1 passed (1)",
    "go test ./...": "ok  \texample.com/a\t0.003s",
    "go test -v": "PASS",
    "cargo test": "     Running unittests src/lib.rs (target/a-1)\n\ntest result: ok. 1 passed; 0 failed",
    "cargo test -q": "test result: ok. 1 passed",
}
# Quiet, wrapped, or decided by the shell: nobody knows what these print.
UNKNOWN = (
    *("make test", "npm test", "tox", "./run-tests.sh", "true", "bin/pytest", "coverage run -m pytest"),
    *(
        "pytest -qq",
        "pytest -q -q",
        "pytest -q --quiet",
        "pytest -p no:terminal",
        "pytest --tap",
        "pytest --co",
    ),
    *(
        "pytest > log",
        "pytest | tail -1",
        "pytest || true",
        "pytest; true",
        "(pytest)",
        "$RUN pytest",
        "pytest &",
    ),
    *("pytest --version", "npx jest --json", "npx vitest --reporter=dot", "node --test --test-reporter=dot"),
    *("go test -json ./...", "go test -c", "cargo test --no-run", "cargo nextest run", "node test.js"),
    *("echo pytest", "python test_a.py", "pytest 'unclosed", ""),
)


@pytest.mark.parametrize("command", REPORTED)
def test_a_runner_is_asked_for_its_report(command: str) -> None:
    assert runners.missing_report(command, REPORTED[command].splitlines(), "") is None
    assert runners.missing_report(command, ["collected 1 item", ""], "") is not None


@pytest.mark.parametrize("command", UNKNOWN)
def test_what_may_be_quiet_is_asked_for_nothing(command: str) -> None:
    assert runners.missing_report(command, [], "") is None


def test_each_of_several_runs_must_report() -> None:
    command = "pytest -q a && pytest -q b"

    assert runners.missing_report(command, ["1 passed in 0.1s"], "") == "pytest"
    assert runners.missing_report(command, ["1 passed in 0.1s", "2 passed in 0.1s"], "") is None
    assert runners.missing_report(command, ["x" * runners.WHOLE, "2 passed in 0.1s"], "") is None


@pytest.mark.parametrize(
    ("command", "settings"),
    [
        ("pytest -q", '[tool.pytest.ini_options]\naddopts = "-q --strict-markers"\n'),
        ("pytest", "[pytest]\naddopts =\n  -ra\n  -p no:terminal\n"),
        ("npx jest", "module.exports = { reporters: ['dot'] }"),
        ("npx vitest run", "export default { test: { reporters: 'dot' } }"),
    ],
)
def test_settings_may_make_it_quiet(command: str, settings: str) -> None:
    assert runners.missing_report(command, [], settings) is None
    assert runners.missing_report(command, [], "unrelated") is not None


def test_a_crate_whose_tests_were_ended_has_a_gap() -> None:
    lines = [
        "     Running unittests src/lib.rs (target/debug/deps/a-1)",
        "running 1 test",
        "   Doc-tests a",
        "test result: ok. 0 passed; 0 failed",
    ]

    assert runners.missing_report("cargo test", lines, "") == "cargo test"


@pytest.mark.parametrize(
    ("name", "command"),
    [
        *(("pytest", "pytest"), ("pytestq", "pytest -q"), ("unittestv", "python -m unittest -v")),
        *(("jest", "npx jest"), ("vitest", "npx vitest run"), ("cargo", "cargo test")),
    ],
)
def test_recorded_outputs_have_their_reports(name: str, command: str) -> None:
    lines = printed.plain((OUTPUTS / f"{name}.txt").read_bytes())

    assert runners.missing_report(command, lines, "") is None
