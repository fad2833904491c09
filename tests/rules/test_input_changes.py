"""Which of the files that an attempt has changed judge it, which are its work or a secret; vacuous tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_lib.rules import input_changes, input_files

HERE = ("100644", "a" * 40)
THERE = ("100644", "b" * 40)
CHANGED, NEW, GONE = (HERE, THERE), (None, THERE), (HERE, None)
CTEST = "cmake -B build && cmake --build build && ctest --test-dir build"
PYTEST = "pytest -q tests/test_a.py"

JUDGES = [
    (PYTEST, "tests/test_a.py", CHANGED, "the test that it names"),
    (PYTEST, "tests/test_a.py", GONE, "a test that was removed"),
    (PYTEST, "tests/data/a.json", CHANGED, "what stands beside tests"),
    (PYTEST, "conftest.py", CHANGED, "the runner's settings"),
    (PYTEST, "conftest.py", NEW, "settings that the base did not have"),
    (PYTEST, "tests/conftest.py", NEW, "the same, beside the tests"),
    (PYTEST, "pytest.py", NEW, "a module in the place of the runner"),
    (PYTEST, "json.py", NEW, "a module in the place of the standard library's"),
    ("pytest", "tests/test_b.py", CHANGED, "any test, where none is named"),
    (PYTEST, "tests/__init__.py", NEW, "a module that is loaded before the test"),
    (PYTEST, "tests/a/b/c.py", NEW, "a module that the test may load in the place of the product's"),
    ("pytest", "conftest.py", NEW, "settings, where the check names no test"),
    ("for t in tests/*.sh; do sh $t; done", "tests/a.sh", CHANGED, "a test that a loop finds"),
    ("sh check.sh", "check.sh", CHANGED, "a script"),
    ("./verify", "verify", CHANGED, "a program that is called a check"),
    ("python tools/check_all.py", "tools/check_all.py", CHANGED, "a program that checks"),
    ("make test", "Makefile", CHANGED, "a Makefile"),
    ("npm test", "src/a.test.js", CHANGED, "a test beside its product"),
    ("go test ./...", "pkg/a_test.go", CHANGED, "a test of Go"),
    ("cargo test", "tests/a.rs", CHANGED, "a test of Rust"),
    ("mvn -q verify", "core/src/test/java/ATest.java", CHANGED, "a test of Java"),
    ("./gradlew test", "app/build.gradle", CHANGED, "the settings of a part of the project"),
    (CTEST, "tests/a.cpp", CHANGED, "a test of C++"),
]
WORK = [
    (PYTEST, "calc.py", CHANGED, "", "the product"),
    (PYTEST, "json.py", CHANGED, "", "a module of the project that was there"),
    (PYTEST, "tests/test_new.py", NEW, "", "a new test"),
    ("sh tests/a.sh", "tests/a.py", NEW, "", "a module that no test in Python can load"),
    ("pytest tests/test_new.py", "tests/test_new.py", NEW, "", "a new test that the check names"),
    ("pytest tests/test_new.py", "conftest.py", NEW, "", "settings of tests that are all new"),
    ("pytest tests/test_new.py", "conftest.py", CHANGED, "", "the same, where they were there before"),
    ("pytest tests/test_new.py", "tests/help.py", CHANGED, "", "what helps tests that are all new"),
    (CTEST, "src/a.cpp", CHANGED, "", "a product in C++"),
    ("python main.py --version", "main.py", CHANGED, "", "the product that the check runs"),
    ("node server.js --check", "server.js", CHANGED, "", "the same in another language"),
    ("sh check.sh", "scripts/build.sh", CHANGED, "", "a script that no check calls"),
    (PYTEST, "tests/test_a.py", CHANGED, "Rewrite tests/test_a.py with fixtures", "what the task names"),
    (PYTEST, "tests/test_a.py", CHANGED, "Rename f to g and adapt its tests.", "tests, in general"),
    (PYTEST, "tests/a.json", CHANGED, "Say more; update docs and expected output", "output, in general"),
    (PYTEST, "tests/test_a.py", CHANGED, "Add a case to test_a.py.", "what it names by its name alone"),
]


def _was_there(changed: Mapping[str, input_changes.Change]) -> Callable[[str], bool]:
    """Let the base have had every directory and file but those that are new."""
    return lambda path: changed.get(path, CHANGED)[0] is not None


def _asked(command: str, cwd: str = "") -> input_changes.Asked:
    return input_changes.Asked(input_files.of(command), cwd)


def _find(command: str, path: str, change: input_changes.Change, words: str = "") -> input_changes.Found:
    changed = {path: change, **({"tests/test_new.py": NEW} if "test_new" in command else {})}
    return input_changes.find(changed, _asked(command), words, _was_there(changed), frozenset(["json"]))


@pytest.mark.parametrize(("command", "path", "change", "why"), JUDGES, ids=[row[3] for row in JUDGES])
def test_it_judges(command: str, path: str, change: input_changes.Change, why: str) -> None:
    assert _find(command, path, change).all == (path,), why


@pytest.mark.parametrize(("command", "path", "change", "words", "why"), WORK, ids=[row[4] for row in WORK])
def test_it_is_work(command: str, path: str, change: input_changes.Change, words: str, why: str) -> None:
    assert not _find(command, path, change, words), why


@pytest.mark.parametrize(
    "words",
    ["Make tests/test_a.py pass", "Fix the bug so that tests/test_a.py is green", "See tests/test_a.py"],
)
def test_a_test_that_shall_only_pass_is_not_named_for_change(words: str) -> None:
    assert not input_changes.is_named_for_change("tests/test_a.py", words)


@pytest.mark.parametrize(
    "words",
    [
        "Rename the flag and add tests",
        "Change f so that the tests pass",
        "Update tests/data.py",
        "Fix the tests",
        "Update the tests-runner",
    ],
)
def test_a_task_that_asks_for_no_change_of_tests_frees_none(words: str) -> None:
    assert _find(PYTEST, "tests/test_a.py", CHANGED, words).old


def test_a_task_that_asks_for_a_change_of_tests_frees_no_script() -> None:
    assert _find("sh check.sh", "check.sh", CHANGED, "Update the tests").old


@pytest.mark.parametrize(("command", "settings"), [("make test", "Makefile"), ("npm test", "jest.config.js")])
def test_settings_judge_where_a_script_says_what_runs(command: str, settings: str) -> None:
    """What the check names is a script of the project's then, and no file that the attempt could write."""
    changed = {settings: CHANGED if settings == "Makefile" else NEW, "test/a.test.js": NEW}

    assert settings in input_changes.find(changed, _asked(command), "", _was_there(changed)).all


def test_a_new_test_that_another_file_lists_stays() -> None:
    """A `CMakeLists.txt` may change, and names it: without it, no test would be built."""
    found = input_changes.find({"tests/a.cpp": CHANGED, "tests/b.cpp": NEW}, _asked(CTEST), "", bool)

    assert found.all == ("tests/a.cpp",)
    assert input_files.part("tests/CMakeLists.txt", b"any") is None


def test_a_check_in_a_directory_goes_by_what_is_there() -> None:
    asked = _asked("sh check.sh", "sub")

    assert input_changes.find({"sub/check.sh": CHANGED}, asked, "", bool).old == ("sub/check.sh",)
    assert not input_changes.find({"check.sh": CHANGED}, asked, "", bool)


def test_each_changed_file_is_looked_at() -> None:
    changed = {"new.py": NEW, "tests/test_a.py": CHANGED, "tests/test_b.py": CHANGED}

    found = input_changes.find(changed, _asked("pytest"), "Rewrite tests/test_a.py", _was_there(changed))

    assert found.old == ("tests/test_b.py",)


def test_the_files_that_a_check_names_itself() -> None:
    changed = {"check.sh": CHANGED, "sub/check.sh": CHANGED, "sub/tests/test_a.py": CHANGED}
    asked = _asked("sh check.sh && pytest tests/test_a.py", "sub")

    assert input_changes.named_inputs(changed, asked, "") == ("sub/check.sh", "sub/tests/test_a.py")
    assert input_changes.named_inputs(changed, asked, "Adapt the tests.") == ("sub/check.sh",)
    assert input_changes.named_inputs(changed, asked, "Rewrite check.sh") == ("sub/tests/test_a.py",)


@pytest.mark.parametrize("settings", [NEW, CHANGED])
def test_new_tests_which_may_need_settings_go_with_these(settings: input_changes.Change) -> None:
    changed = {"tests/conftest.py": settings, "tests/sub/test_b.py": NEW, "new.py": NEW}

    found = input_changes.find(changed, _asked("pytest"), "", lambda _: True)

    assert (*found.old, *found.new) == ("tests/conftest.py",)
    assert found.beside == ("tests/sub/test_b.py",)


def test_settings_in_a_directory_that_is_new_turn_no_test_that_was_there() -> None:
    changed = {"unit/conftest.py": NEW, "unit/test_b.py": NEW}

    assert not input_changes.find(changed, _asked("pytest"), "", lambda _: False)


@pytest.mark.parametrize(
    ("path", "text", "named"),
    [
        ("check.sh", "set -e\nsh tests/more.sh\n", "tests/more.sh"),
        ("check.sh", "# a comment\n. lib/common.sh\n", "lib/common.sh"),
        ("Makefile", "test:\n\t@./scripts/verify.sh\n", "scripts/verify.sh"),
        ("Makefile", "include checks.mk\n", "checks.mk"),
        ("package.json", '{"scripts": {"test": "node test/all.js"}}', "test/all.js"),
    ],
)
def test_what_a_script_calls_judges_in_turn(path: str, text: str, named: str) -> None:
    assert input_changes.is_script(path)
    assert named in input_files.of_script(path, text).named


LINES = st.lists(st.sampled_from(["", "assert a", "assert b", "x = 1"]), max_size=6)


@given(LINES, LINES)
def test_lines_that_are_only_added_weaken_nothing(old: list[str], more: list[str]) -> None:
    assert input_changes.lost_lines(old, [*old, *more]) == 0
    assert input_changes.lost_lines([*old, "assert c"], [*more, *old]) == 1


@pytest.mark.parametrize("mark", ["@pytest.mark.skip", "it.only('a')", "xit('a')", "#[ignore]", "t.Skip()"])
def test_a_new_mark_that_skips_weakens(mark: str) -> None:
    assert input_changes.lost_lines(["def test_a():"], [mark, "def test_a():"]) == 1


FRESH = [
    ("pytest tests/test_new.py", {"a.py": CHANGED, "tests/test_new.py": NEW}, ["tests/test_new.py"]),
    ("pytest", {"a.py": CHANGED, "pkg/test_new.py": NEW, "tests/util.py": NEW}, ["pkg/test_new.py"]),
    ("sh tests/new.sh", {"f": NEW, "tests/new.sh": NEW}, ["tests/new.sh"]),
    ("pytest tests", {"a.py": CHANGED, "other/test_new.py": NEW}, []),
    ("pytest tests/test_a.py", {"a.py": CHANGED, "tests/test_new.py": NEW}, []),
    ("pytest tests", {"tests/test_new.py": NEW, "README.md": CHANGED, ".gitignore": NEW}, []),
    ("pytest tests", {"tests/test_new.py": NEW, "tests/data.json": NEW, "setup.cfg": CHANGED}, []),
    ("pytest tests", {"a.py": CHANGED, "tests/test_new.py": NEW, "tests/test_a.py": CHANGED}, []),
    ("pytest tests", {"a.py": CHANGED, "tests/test_new.py": NEW, "tests/data.json": GONE}, []),
    ("python main.py", {"a.py": CHANGED, "main.py": NEW}, []),
    ("grep -q done f", {"f": NEW, "tests/test_new.py": NEW}, []),
]


@pytest.mark.parametrize(("check", "changed", "tests"), FRESH)
def test_new_tests_judge_alone_where_no_other_changed_and_the_product_did(
    check: str, changed: Mapping[str, input_changes.Change], tests: list[str]
) -> None:
    was_there = {"tests", "tests/test_a.py"}
    found = input_changes.fresh(changed, _asked(check), was_there.__contains__)

    assert list(found.tests) == tests


@pytest.mark.parametrize(
    ("path", "may"),
    [
        *((path, True) for path in ("tests/a.json", "check.sh", "pkg/setup.cfg", "src/a_test.go")),
        *((path, True) for path in ("Makefile", "pytest/__init__.py", "README.md")),
        *((path, False) for path in ("src/a.py", "web/app.ts", "main.go")),
    ],
)
def test_a_list_is_not_searched_for_whom_a_product_could_judge(path: str, may: bool) -> None:
    assert input_changes.may_be_input({path: CHANGED}) is may
    assert not input_changes.may_be_input({path: NEW})


def test_new_tests_bring_what_stands_beside_them() -> None:
    changed = dict.fromkeys(("a.py", "tests/test_a.py", "tests/a.json", "conftest.py"), NEW)
    asked = _asked("pytest")

    assert input_changes.fresh(changed, asked, lambda _: False).beside == ("tests/a.json", "conftest.py")
    later = {**changed, "conftest.py": CHANGED}
    assert input_changes.fresh(later, asked, lambda _: False).beside == ("tests/a.json",)


@pytest.mark.parametrize(
    ("words", "changed", "alone"),
    [
        ("Write f", {"tests/test_new.py": NEW}, ["tests/test_new.py"]),
        ("Write f", {"tests/test_new.py": NEW, "README.md": CHANGED}, ["tests/test_new.py"]),
        ("Write f", {"tests/test_new.py": NEW, "f.py": CHANGED}, []),
        ("Test f", {"tests/test_new.py": NEW}, []),
        ("Raise the coverage of f", {"tests/test_new.py": NEW}, []),
        ("Write f", {"README.md": CHANGED}, []),
    ],
)
def test_new_tests_and_nothing_else_are_told_where_no_task_speaks_of_tests(
    words: str, changed: Mapping[str, input_changes.Change], alone: list[str]
) -> None:
    asked = _asked("pytest tests/test_new.py")

    assert list(input_changes.fresh(changed, asked, lambda _: False, words).alone) == alone


def test_new_tests_are_looked_for_where_the_check_runs() -> None:
    changed = dict.fromkeys(("web/a.js", "web/a.test.js", "api/b.test.js"), NEW)

    assert input_changes.fresh(changed, _asked("npm test", "web"), lambda _: False).tests == (
        "web/a.test.js",
    )


# -- a check that cannot fail is told from one that can


def _has(text: str, file: str) -> bool:
    return (text, file) == ("def login", "auth.py")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("true", "`true` never fails"),
        (":", "never fails"),
        ("echo ok", "`echo` never fails"),
        ("pytest -q || true", "ends with `true`"),
        ("pytest -q || echo failed", "ends with `echo failed`"),
        ("pytest; exit 0", "ends with `exit 0`"),
        ("pytest -q\ntrue\n", "ends with `true`"),
        ("set -x; pytest -q; true", "ends with `true`"),
        ("pytest -q | tee log", "`tee` does not fail"),
        ("grep -q 'def login' auth.py", "auth.py has 'def login' already"),
    ],
)
def test_a_check_that_cannot_fail_is_named_with_its_reason(command: str, words: str) -> None:
    assert words in (input_files.why_vacuous(command, _has) or "")


@pytest.mark.parametrize(
    "command",
    [
        "",
        "pytest -q",
        "pytest -q && true",
        "test -f a && echo ok",
        "set -o pipefail; pytest | tee log",
        "pytest | grep -q passed",
        "true && pytest",
        "grep -q other auth.py",
        "grep -qv 'def login' auth.py",
        "grep -q 'def login' other.py",
        "ls 'unclosed",
        "(true; pytest)",
        "! true",
        "exit 1; true",
        "pytest -q || exit 1; echo ok",
        "pytest || { echo red; exit 1; }; echo ok",
        "set -e; pytest; true",
        "set -eu\npytest\necho ok",
        "set -o errexit\npytest\necho ok",
    ],
)
def test_one_that_can_fail_is_not(command: str) -> None:
    assert input_files.why_vacuous(command, _has) is None


SECRET = """
    .env web/.env .ENV .env.local .env.production
    server.pem keys/Server.PEM
    id_rsa .ssh/id_ed25519 id_ed25519.bak id_deploy
    credentials.json credentials-prod.json .netrc
"""
HARMLESS = """
    .env.example .env.sample .env.template .env.dist .env.local.example env .envrc environment.py
    id_rsa.pub id_deploy.pub id_map.py src/id_token.go identity valid_rsa
    credentials.py credentials.example.json credentials.schema.json pem.py .npmrc
"""


@pytest.mark.parametrize("path", SECRET.split())
def test_secret(path: str) -> None:
    assert input_changes.secret(path) == path


@pytest.mark.parametrize("path", HARMLESS.split())
def test_no_secret(path: str) -> None:
    assert input_changes.secret(path) is None


def test_a_program_may_be_called_like_a_key() -> None:
    assert input_changes.secret("bin/id_list", executable=True) is None
    assert input_changes.secret("bin/.netrc", executable=True) == "bin/.netrc"


def test_an_environment_called_env_is_one_thing_to_decide() -> None:
    assert input_changes.secret("api/.env/lib/python3/site.py") == "api/.env"


@pytest.mark.parametrize(
    ("content", "has_it"),
    [
        (b"//registry/:_authToken=abc", True),
        (b"_PASSWORD = abc", True),
        (b"//registry/:_authToken=${NPM_TOKEN}", False),
        (b"_auth=\nsave-exact=true", False),
    ],
)
def test_a_token_of_npm(content: bytes, *, has_it: bool) -> None:
    assert input_changes.has_npm_token(content) is has_it


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"-----BEGIN OPENSSH PRIVATE KEY-----", "a private key"),
        (b"-----BEGIN PRIVATE KEY-----", "a private key"),
        (b"id = AKIAABCDEFGHIJKLMNOP", "an AWS key"),
        (b"ghp_" + b"a1B2" * 9, "a GitHub token"),
        (b"xoxb-123456789012-abc", "a Slack token"),
        (b"sk-ant-" + b"x" * 20, "a key of a model's provider"),
        (b"-----BEGIN CERTIFICATE-----", None),
        (b"task-001 disk-full-and-quite-empty", None),
        (b"the sk-prefix", None),
    ],
)
def test_what_looks_like_a_key(content: bytes, kind: str | None) -> None:
    assert input_changes.key_in(content) == kind
