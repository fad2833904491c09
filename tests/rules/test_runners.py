"""The runner of a check: which files it reads, whether it must report, and what is shown of its output."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.rules import input_files, runners
from harness_lib.rules.runners import Failed
from harness_lib.system.processes import runner

ROWS: dict[str, tuple[list[str], list[Failed]]] = {
    "pytest: nothing is said of it": (["FAILED a.py::test_a"], [Failed("a.py::test_a")]),
    "pytest: a word of the log": (["ERROR no such host", "FAILED to connect"], []),
    "unittest: a colon in its name": (
        ["FAIL: test_a (x='b: c')", "-" * 70, "AssertionError: no"],
        [Failed("test_a (x='b: c')", "AssertionError: no")],
    ),
    "jest: what the code prints": (["  \u25cf Console", "    boom"], []),
    "vitest: one after the other": (
        [" FAIL  a > one", "Error: x", " FAIL  a > two ", "Error: y"],
        [Failed("a > one", "Error: x"), Failed("a > two", "Error: y")],
    ),
    "go: a test that says nothing": (["--- FAIL: TestA (0.00s)"], [Failed("TestA")]),
    "go: a panic": (["--- FAIL: TestA (0.00s)", "panic: boom"], [Failed("TestA", "panic: boom")]),
    "cargo: a place is told in the next row": (
        ["error[E0001]: a", " --> src/l.rs:1:2", "error: aborting", "talk", " --> src/l.rs:3:4"],
        [Failed("src/l.rs:1:2", "error[E0001]: a")],
    ),
    "pytest: what cannot be imported": (
        [
            "____ ERROR collecting tests/test_a.py ____",
            "ImportError while importing test module '/p/tests/test_a.py'.",
            "E   ModuleNotFoundError: No module named 'pkg.a'",
            "ERROR tests/test_a.py",
            "!!!!!!!! Interrupted: 1 error during collection !!!!!!!!",
        ],
        [Failed("tests/test_a.py", "ModuleNotFoundError: No module named 'pkg.a'")],
    ),
    "pytest: no line says why": (
        [
            "ERROR tests/test_a.py",
            "!!!! Interrupted: 1 error during collection !!!!",
            "=== 1 error in 0.1s ===",
        ],
        [Failed("tests/test_a.py")],
    ),
    "node: a message of several lines": (
        ["not ok 1 - adds", "  error: |-", "    Expected values to be equal:", "    ", "    2 !== 3"],
        [Failed("adds", "error: Expected values to be equal: 2 !== 3")],
    ),
    "gcc, javac, mypy: a path with a blank": (
        ["a b/c.h:1:20: error: no", "a b/C.java:3: error: cannot find", "c.cpp:2:1: fatal error: x.h: none"],
        [
            Failed("a b/c.h:1:20", "error: no"),
            Failed("a b/C.java:3", "error: cannot find"),
            Failed("c.cpp:2:1", "error: x.h: none"),
        ],
    ),
    "ctest": (
        ["The following tests FAILED:", "\t  1 - adds (Failed)", "\t 12 - b c (Not Run)"],
        [Failed("adds", "Failed"), Failed("b c", "Not Run")],
    ),
    "GoogleTest, Catch2": (
        ["/p/a.cpp:7: Failure", "Value of: ok", "b.cpp:3: FAILED:", "  REQUIRE( f() )"],
        [Failed("/p/a.cpp:7", "Value of: ok"), Failed("b.cpp:3", "REQUIRE( f() )")],
    ),
    "Maven": (
        [
            "[ERROR] /p q/A.java:[3,5] cannot find symbol",
            "[ERROR] adds(ex.CalcTest)  Time elapsed: 0.077 s  <<< FAILURE!",
            "[ERROR]   CalcTest.adds:4 expected:<5> but was:<0>",
            "[ERROR] Tests run: 1, Failures: 1, Errors: 0, Skipped: 0",
        ],
        [
            Failed("/p q/A.java:[3,5]", "cannot find symbol"),
            Failed("CalcTest.adds", "expected:<5> but was:<0>"),
        ],
    ),
    "Gradle": (
        ["ex.CalcTest > adds FAILED", "    java.lang.AssertionError at CalcTest.java:4", ":test FAILED", ""],
        [Failed("ex.CalcTest > adds", "java.lang.AssertionError at CalcTest.java:4")],
    ),
    "TAP: what may fail": (
        ["not ok 1 - a # TODO later", "not ok 2 - b # skip", "not ok 3 - c"],
        [Failed("c")],
    ),
    "each once, by the first word of why": (
        ["FAILED a.py::b - x", "FAILED a.py::b - y", "FAILED a.py::b"],
        [Failed("a.py::b", "x")],
    ),
}


def _missing(command: str, lines: list[str], settings: str) -> str | None:
    return runners.missing_report(runners.started_by(command), lines, settings)


@pytest.mark.parametrize(("rows", "failed"), ROWS.values(), ids=ROWS)
def test_a_failure_is_told_by_its_name_and_the_first_line_that_says_why(
    rows: list[str], failed: list[Failed]
) -> None:
    assert runners.failures(rows) == failed


def test_no_more_than_anybody_reads_is_taken() -> None:
    assert len(runners.failures([f"FAILED a.py::test_{n} - no" for n in range(1000)])) == runners.MOST


# -- a known runner must have said that it came to its end; of anything else nothing is asked


OUTPUTS = Path(__file__).with_name("outputs")
REPORTED = {
    "pytest -q": "..\n2 passed in 0.01s",
    "MAX=1 pytest": "=== 1 passed, 1 skipped in 0.02s ===",
    "python3 -m pytest -q -p no:cacheprovider tests/test_a.py": "1 passed in 0.01s",
    "'/my envs/a/bin/python' -m pytest -q": "1 passed in 0.01s",
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
    assert _missing(command, REPORTED[command].splitlines(), "") is None
    assert _missing(command, ["collected 1 item", ""], "") is not None


@pytest.mark.parametrize("command", UNKNOWN)
def test_what_may_be_quiet_is_asked_for_nothing(command: str) -> None:
    assert _missing(command, [], "") is None


@pytest.mark.parametrize("command", ["pytest -q a && pytest -q b", "pytest -q \\\n a &&\n pytest -q b"])
def test_each_of_several_runs_must_report(command: str) -> None:

    assert _missing(command, ["1 passed in 0.1s"], "") == "pytest"
    assert _missing(command, ["1 passed in 0.1s", "2 passed in 0.1s"], "") is None
    assert _missing(command, ["x" * runners.WHOLE, "2 passed in 0.1s"], "") is None


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
    assert _missing(command, [], settings) is None
    assert _missing(command, [], "unrelated") is not None


def test_a_crate_whose_tests_were_ended_has_a_gap() -> None:
    lines = [
        "     Running unittests src/lib.rs (target/debug/deps/a-1)",
        "running 1 test",
        "   Doc-tests a",
        "test result: ok. 0 passed; 0 failed",
    ]

    assert _missing("cargo test", lines, "") == "cargo test"


@pytest.mark.parametrize(
    ("name", "command"),
    [
        *(("pytest", "pytest"), ("pytestq", "pytest -q"), ("unittestv", "python -m unittest -v")),
        *(("jest", "npx jest"), ("vitest", "npx vitest run"), ("cargo", "cargo test")),
        *(("nodetap", "node --test"), ("nodespec", "node --test")),
    ],
)
def test_recorded_outputs_have_their_reports(name: str, command: str) -> None:
    lines = runner.plain((OUTPUTS / f"{name}.txt").read_bytes())

    assert _missing(command, lines, "") is None


# -- which files judge an attempt is told from the command; of a project's own file only a part counts


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("pytest -q tests/test_a.py::test_b", "tests/test_a.py"),
        ("./scripts/smoke.sh", "scripts/smoke.sh"),
        ("uv run pytest tests/unit", "run pytest tests/unit"),
        ("bash check.sh --conf=conf/c.ini", "check.sh conf/c.ini"),
        ("sh check.sh || sh other.sh", "check.sh other.sh"),
        ("true&&sh check.sh;sh b.sh", "check.sh b.sh"),
        ("sh scripts/a+b.sh", "scripts/a+b.sh"),
        ("python -X dev check.py", "dev check.py"),
        ("python check.py --sep=- --set=a=b.ini", "check.py a=b.ini"),
        ("bash /etc/profile check.sh", "check.sh"),
        ("bash toolsX/ X.sh", "toolsX X.sh"),
        # What a program is told to do is no program.
        ("python check.py --only test", "check.py test"),
        # Only what goes into a program that looks is looked at.
        ("python check.py && grep -q x out", "check.py"),
        ("cat a | python check.py | bash report.sh", "check.py report.sh"),
        ("timeout 60 python check.py | tee out", ""),
        ("python check.py |", "check.py"),
        ("set -e\npython check.py\npytest tests/unit", "check.py tests/unit"),
        ("python \\\n check.py |\n tee out", ""),
        # What is only looked at, or lies elsewhere, does not judge.
        ("grep -q Usage README.md", ""),
        ("test -f made.txt", ""),
        ("python app.py | grep -q hello", ""),
        ("ruff check src/app.py", ""),
        ("cat /etc/passwd", ""),
        ("python ../outside.py", ""),
        ("unclosed 'quote", ""),
        ("", ""),
        ("true", ""),
    ],
)
def test_what_a_check_names_judges_and_nothing_else_of_it_does(command: str, named: str) -> None:
    assert input_files.of(command).named == tuple(named.split())


def test_settings_and_quotes_of_the_shell_are_understood() -> None:
    assert input_files.of("cd x && A=1 b=2 bash 'a b.sh'").named == ("a b.sh",)


@pytest.mark.parametrize(
    ("command", "config"),
    [
        ("pytest", "**/conftest.py"),
        (".venv/bin/pytest -q", "pyproject.toml"),
        ("python -m pytest", "pytest.py"),
        ("python3 -m unittest", "unittest.py"),
        ("npm test", "package.json"),
        ("npx jest", "jest.config.*"),
        ("make test", "Makefile"),
        ("cd sub && go test ./...", "go.mod"),
        ("cargo test -p api", ".cargo/config.toml"),
        ("pytest -q && npx jest", "pytest.ini"),
        ("pytest -q && npx jest", "jest.config.*"),
    ],
)
def test_a_known_runner_brings_its_configuration(command: str, config: str) -> None:
    assert config in input_files.of(command).config


def test_a_script_has_the_inputs_of_each_of_its_lines() -> None:
    script = input_files.of_script("check.sh", "pytest -q\n# sh no.sh\nsh other.sh\n")

    assert (script.named, set(script.programs)) == (("other.sh",), {"pytest", "sh"})
    assert (script.tests, script.config) == input_files.of("pytest -q")[2:0:-1]


def test_no_runner_has_none() -> None:
    assert input_files.of("test -f done") == input_files.InputFiles(programs=("test",))


PYPROJECT = """\
[project]
name = "x"
dependencies = ["a"]

[tool.pytest.ini_options]
addopts = "-q"

[tool.black]
line-length = 80
"""
POM = "<project><build><x/></build>\n<dependencies><a/></dependencies>\n</project>\n"
GRADLE = "dependencies {\n  implementation 'a:b:1'\n}\ntest {\n  useJUnit()\n}\n"


@pytest.mark.parametrize(
    ("name", "old", "new", "changes"),
    [
        ("pyproject.toml", PYPROJECT, PYPROJECT.replace("-q", "-k none"), True),
        ("pyproject.toml", PYPROJECT, PYPROJECT.replace('["a"]', '["a", "b"]').replace("80", "90"), False),
        ("pyproject.toml", "[tool]\n", '[tool]\npytest.ini_options.addopts = "-k none"\n', True),
        ("pyproject.toml", "", 'tool.pytest.ini_options.addopts = "-k none"\n', True),
        ("pyproject.toml", "", '[tool."pytest".ini_options]\naddopts = "-k none"\n', True),
        ("sub/setup.cfg", "[metadata]\nname = x\n", "[metadata]\nname = y\n", False),
        ("setup.cfg", "", "[tool:pytest]\naddopts = -k none\n", True),
        ("tox.ini", "[pytest]\n", "[pytest]\naddopts = -k none\n", True),
        ("package.json", '{"scripts": {"test": "jest"}}', '{"scripts": {"test": "true"}}', True),
        ("package.json", '{"name": "x"}', '{"name": "x", "dependencies": {"a": "1"}}', False),
        ("package.json", '{"jest": {}}', "not JSON", True),
        ("package.json", '{"jest": {}}', "[" * 5000, True),
        ("go.mod", "module x\n", "module x\n\nrequire (\n\ta v1\n)\nrequire b v1 // indirect\n", False),
        ("go.mod", "module x\n", "module x\nreplace a => ./fake\n", True),
        ("go.mod", "", "require ()\nreplace a => ./fake\nrequire (\n\tb v1\n)\n", True),
        ("go.mod", "", "require (\n\ta v1\n\t)\nreplace a => ./fake\n", True),
        # What has many beginnings and no end is read in a moment.
        pytest.param("go.mod", "", "require (\n" * 50_000, False, id="go.mod, never closed"),
        pytest.param("pom.xml", "", "<!-- <version>" * 20_000, False, id="pom.xml, never closed"),
        ("Cargo.toml", "[package]\n", '[package]\n[dependencies]\na = "1"\n', False),
        ("Cargo.toml", "[package]\n", "[package]\n[lib]\ntest = false\n", True),
        (
            "pom.xml",
            POM,
            POM.replace("<a/>", "<a/><b/>").replace("<de", "<a.version>2</a.version><de"),
            False,
        ),
        ("pom.xml", POM, POM.replace("<x/>", "<skip>true</skip>"), True),
        ("build.gradle", GRADLE, GRADLE.replace("}", "  testApi(platform('a:b:1'))\n}", 1), False),
        ("build.gradle.kts", GRADLE, GRADLE.replace("'a:b:1'", 'project(":b")'), False),
        ("build.gradle", GRADLE, GRADLE.replace("'a:b:1'", "test.setEnabled(false)"), True),
        ("build.gradle", GRADLE, GRADLE.replace("useJUnit()", "exclude 'a'"), True),
        ("Makefile", "test:\n\tpytest\n", "test:\n\ttrue\n", True),
        # How it is written: comments, empty lines, what trails, the order of keys.
        ("tox.ini", "[pytest]\na = 1\n", "[pytest]\n\n# b\n  # c\na = 1  \n", False),
        ("package.json", '{"scripts": {"a": "1", "b": "2"}}', '{"scripts": {"b": "2", "a": "1"}}', False),
        ("go.mod", "replace a => ./b\n", "replace a => ./b // for now\n", False),
        # Which section a line stands in.
        ("tox.ini", "[pytest]\na = 1\n[mypy]\n", "[pytest]\n[mypy]\na = 1\n", True),
        ("pyproject.toml", "", "[tool.'pytest'.ini_options]\naddopts = '-k none'\n", True),
    ],
)
def test_of_a_file_that_counts_which_a_runner_reads(name: str, old: str, new: str, *, changes: bool) -> None:
    before, after = (input_files.part(name, text.encode()) for text in (old, new))
    assert (before != after) is changes


@pytest.mark.parametrize("name", ["package.json", "sub/pyproject.toml", "setup.cfg", "go.mod"])
def test_a_file_of_which_only_a_part_counts_may_hold_nothing_that_does(name: str) -> None:
    assert input_files.is_partial(name)
    assert input_files.part(name, b"{}") is None or not name.endswith(".json")
    assert input_files.part(name, b"") is None or name.endswith(".json")


@pytest.mark.parametrize("name", ["Makefile", "tests/test_a.py", "package.json/Makefile"])
def test_any_other_file_counts_whole(name: str) -> None:
    assert not input_files.is_partial(name)
    assert input_files.part(name, b"\0 any") == b"\0 any"


def test_a_file_in_another_encoding_is_read_all_the_same() -> None:
    assert input_files.part("setup.cfg", b"[tool:pytest]\naddopts = \xff\n") == (
        b"[tool:pytest]\naddopts = \xff"
    )


# -- what of a check's output is shown; `outputs/` has what real runners wrote, and what is shown of it


SHOWN = {path.stem: path.read_text().removesuffix("\n") for path in sorted(OUTPUTS.glob("*.shown"))}


def recorded(name: str) -> list[str]:
    return runner.plain((OUTPUTS / f"{name}.txt").read_bytes())


@pytest.mark.parametrize("runner", SHOWN)
def test_what_failed_and_why_is_shown_of_each_known_runner_and_torn_never_breaks(runner: str) -> None:
    lines = recorded(runner)

    assert runners.of(lines) == SHOWN[runner]
    for cut in range(len(lines)):
        assert len(runners.of(lines[:cut])) <= runners.LIMIT
        assert len(runners.of(lines[cut:])) <= runners.LIMIT


@pytest.mark.parametrize(
    ("other", "same"),
    [("gotestv", "gotest"), ("jestv", "jest"), ("unittestv", "unittest"), ("pytestq", "pytest")],
)
def test_more_talk_of_a_runner_changes_no_name(other: str, same: str) -> None:
    assert {each.name for each in runners.failures(recorded(other))} == {
        each.name for each in runners.failures(recorded(same))
    }


def test_a_line_names_each_failure_and_the_first_word_of_why() -> None:
    assert runners.in_a_line(recorded("cargo")) == (
        "tests::adds_the_tax: assertion `left == right` failed: tax is missing / tests::reads_a_file: called "
        '`Result::unwrap()` on an `Err` value: Os { code: 2, kind: NotFound, message: "No such file or '
        'directory" }'
    )
    assert runners.in_a_line(["a", "", "2 problems ", "exit"]) == "2 problems / exit"
    maven = ["[ERROR] Failed to execute goal a: b -> [Help 1]", "[ERROR] ", "[ERROR] [Help 1] http://a.b"]
    assert runners.in_a_line(["x", "y", *maven]) == f"y / {maven[0]}"
    assert runners.in_a_line(["make: *** [all] Error 2"]) == "make: *** [all] Error 2"


def test_of_an_unknown_program_the_end_is_shown() -> None:
    lines = [*(f"line {n}" for n in range(5000)), "", "last words"]

    shown = runners.of(lines)

    assert runners.LIMIT - 20 < len(shown) <= runners.LIMIT
    assert shown.startswith("\u2026\nline ")
    assert shown.endswith("\nline 4999\nlast words")
    assert runners.of(["only", "", "this"]) == "only\nthis"
    assert runners.of([]) == ""


def test_a_line_without_end_is_cut() -> None:
    assert len(runners.of(["x" * 1_000_000])) <= runners.LIMIT
    assert len(runners.of(["FAILED a.py::" + "y" * 1_000_000])) <= runners.LIMIT


def test_as_many_names_are_shown_as_there_is_room_for_and_the_rest_is_counted() -> None:
    rows = [f"FAILED a.py::test_{n} - {'x' * 60}" for n in range(100, 400)]

    names, _, rest = runners.of(rows).partition("\n\u2026 and ")

    assert names.split("\n") == [f"a.py::test_{n}" for n in range(100, 100 + len(names.split("\n")))]
    assert rest.startswith(f"{runners.MOST - len(names.split())} more\n")
    assert len(names) < runners.LIMIT // 3
    assert runners.of(rows).endswith(rows[-1])
    assert len(runners.in_a_line(rows)) <= runners.ONE_LINE


def test_why_is_shown_of_what_has_scrolled_by() -> None:
    rows = ["___ test_a ___", "E   boom", *(f"talk {n}" for n in range(40)), "FAILED a.py::test_a - boom"]

    assert runners.of(rows).startswith("a.py::test_a\nE   boom\n\u2026\n")


def test_a_row_is_cut_with_a_sign_of_it_and_only_where_it_is_too_long() -> None:
    fits = "x" * runners.ROW_LENGTH

    assert runners.of([fits]) == fits
    assert runners.of([fits + "y"]) == fits[:-1] + "\u2026"
