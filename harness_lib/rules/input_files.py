"""Read the command of a check: which inputs it has, and whether it can fail.

Its inputs are the files that it names, the settings of its runner, and tests.
An attempt that changes one of them changes its own check, which is sometimes the task and sometimes a cheat.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import chain, pairwise
from types import MappingProxyType
from typing import NamedTuple

from harness_lib import typed
from harness_lib.text import Strings, words_of

AUTO = "auto"
# In the place of globs: the check inputs of the task are not guarded.
NONE = "none"
WORDS = frozenset((AUTO, NONE))
# How a Makefile or a script includes another one.
_INCLUDE = re.compile(r"^(?:-?include|source|\.)\s+")
_PYTHON = "pyproject.toml setup.cfg tox.ini sitecustomize.py usercustomize.py"
_NODE = "package.json .npmrc"
_SECTION = re.compile(r"\s*\[+\s*([^\s\[\]][^\]]*?)\s*\]+\s*(?:#.*)?$")
_PYTHON_SECTIONS = re.compile(r"(tool[.:])?(pytest|coverage|tox|testenv|mypy|ruff|hatch|poe|unittest)\b")
_CARGO_SECTIONS = re.compile(r"(lib|test|bench|profile|patch|replace)\b")
_NODE_KEYS = ("scripts", "jest", "vitest", "mocha", "ava", "nyc", "c8", "babel", "eslintConfig", "type")
# Programs that inspect or compile files: their arguments are the work, not check inputs.
_LOOKERS = words_of(
    "grep egrep fgrep rg ag test [ [[ cat head tail wc diff cmp ls stat file find sed awk jq tee touch "
    "echo printf cd mkdir rm cp mv ln curl wget export set "
    "ruff mypy flake8 pylint black tsc eslint prettier shellcheck cc gcc g++ clang rustc javac cmake ctest"
)
_TEST_DIRECTORIES = words_of(
    "__tests__ __mocks__ __fixtures__ __snapshots__ conformance e2e fixture fixtures golden spec specs "
    "test testdata tests"
)
# Programs that end with 0 whatever their arguments are.
_ALWAYS = frozenset(["true", ":", "echo", "printf"])
_PAGERS = frozenset(["cat", "tee", "tail", "head", "sed", "tr", "cut", "sort", "uniq", "wc", "column"])
_AFTER_ANOTHER = (";", "\n")
# Words that may end a check before its last command.
_ENDS_EARLY = frozenset(["exit", "return", "exec", "errexit"])
_GREP = 3
# What most work may add: dependencies and their versions. The end of the text ends what is never closed: to
# search for the end from each beginning would take hours.
_GO_FREE = (
    r"(?m)//[^\n]*|^require[^\S\n]*\([^\S\n]*(?://[^\n]*)?\n(?:(?![^\S\n]*\))[^\n]*\n)*(?:[^\S\n]*\))?"
    r"|^require [^\n]*"
)
_POM_FREE = (
    r"(?s)<!--.*?(?:-->|\Z)|<(dependencyManagement|dependencies|[\w.-]*[vV]ersion)\s*>.*?(?:</\1\s*>|\Z)"
)
_GRADLE_FREE = (
    r"(?m)^[ \t]*\w*(?:[iI]mplementation|[aA]pi|Only|[cC]ompile|[rR]untime|[pP]rocessor|kapt|ksp)[ (]+"
    r"(?:(?:platform|project|kotlin) *\( *)?(?:(['\"])[\w.:$@/+-]*\1|libs\.[\w.]+)[ )]*$"
)


class Runner(NamedTuple):
    """The settings files of a test runner, and the names of its tests: git's globs, with blanks between."""

    config: str
    tests: str = ""


_PYTEST = Runner(
    "**/conftest.py pytest.ini .pytest.ini pytest.toml .pytest.toml pytest.py pytest/** _pytest/** "
    f"{_PYTHON}",
    "**/test_*.py **/*_test.py",
)
_UNITTEST = Runner(f"unittest.py unittest/** {_PYTHON}", "**/test*.py")
_SCRIPTED = Runner(
    f"{_NODE} jest.config.* vitest.config.* vitest.workspace.* vite.config.* .mocharc.* ava.config.* "
    "playwright.config.* cypress.config.* babel.config.* tsconfig*.json deno.json*",
    "**/*.test.* **/*.spec.* **/__tests__/**",
)
_MAKE = Runner("Makefile makefile GNUmakefile")
_GO = Runner("go.mod go.work", "**/*_test.go")
_CARGO = Runner("**/Cargo.toml .cargo/config.toml .config/nextest.toml", "tests/**")
_RUBY = Runner(".rspec Rakefile spec/spec_helper.rb spec/rails_helper.rb", "spec/** test/**")
_JAVA = Runner(
    "**/pom.xml .mvn/** **/build.gradle **/build.gradle.kts settings.gradle settings.gradle.kts",
    "**/src/test/** **/src/*Test/**",
)
# Which files are tests a CMakeLists.txt says, and every work changes it.
_CTEST = Runner("CMakePresets.json", "**/CTestTestfile.cmake")
RUNNERS: Mapping[str, Runner] = MappingProxyType(
    {
        **dict.fromkeys(("pytest", "py.test", "tox", "nox", "coverage", "hatch"), _PYTEST),
        "unittest": _UNITTEST,
        **dict.fromkeys(
            words_of("jest vitest mocha ava playwright cypress npm pnpm yarn bun npx tsc eslint deno"),
            _SCRIPTED,
        ),
        "make": _MAKE,
        "gmake": _MAKE,
        "just": Runner("justfile Justfile .justfile"),
        "task": Runner("Taskfile.yml Taskfile.yaml"),
        "go": _GO,
        "cargo": _CARGO,
        **dict.fromkeys(("rspec", "rake", "minitest"), _RUBY),
        **dict.fromkeys(("mvn", "mvnw", "mvnd", "gradle", "gradlew"), _JAVA),
        "ctest": _CTEST,
        "phpunit": Runner("phpunit.xml phpunit.xml.dist", "**/*Test.php"),
        "mypy": Runner("mypy.ini .mypy.ini pyproject.toml setup.cfg"),
        "ruff": Runner("ruff.toml .ruff.toml pyproject.toml"),
    }
)


class InputFiles(NamedTuple):
    """The inputs of a check, relative to where it runs: names as they are written, and globs.

    A file of `config` counts from the moment it appears; files of `named` and `tests` only if the base had
    them. `programs` are those that the shell looks up.
    """

    named: Strings = ()
    config: Strings = ()
    tests: Strings = ()
    programs: Strings = ()

    @property
    def are_files(self) -> bool:
        """Return whether the inputs include any file."""
        return bool(self.named or self.config or self.tests)


@lru_cache(maxsize=16_384)
def of(command: str) -> InputFiles:
    """Return the inputs of a check, as far as its command shows them."""
    simple = ((_without_settings(words), end) for words, end in typed.simple_commands(command))
    commands = [each for each in simple if each[0]]
    after = [*(words for words, _ in commands[1:]), []]
    return joined(
        _of_words(words, is_work=_looks(words) or (ended_by == "|" and _looks(behind)))
        for (words, ended_by), behind in zip(commands, after, strict=False)
    )


def _of_words(words: list[str], *, is_work: bool) -> InputFiles:
    """Return the inputs of one simple command; with `is_work` what it names is no input."""
    # A program without a slash is looked up on the PATH.
    own = words if "/" in words[0] else words[1:]
    runners = [RUNNERS[name] for word in words if (name := _base(word)) in RUNNERS]
    return InputFiles(
        () if is_work else tuple(path for word in own if (path := _path(word))),
        tuple(glob for runner in runners for glob in runner.config.split()),
        tuple(glob for runner in runners for glob in runner.tests.split()),
        tuple(word for word in words if _is_program(word, words)),
    )


def _is_program(word: str, words: list[str]) -> bool:
    """Return whether `word` is a program outside the project, or a runner at any place."""
    if "/" in word:
        return word is words[0] and word.startswith("/")
    return word is words[0] or word in RUNNERS


def is_among_tests(path: str) -> bool:
    """Return whether a directory of `path` has a name for tests."""
    return tests_above(path) is not None


def tests_above(path: str) -> str | None:
    """Return the first directory of `path` that has a name for tests."""
    folders = path.split("/")[:-1]
    ends = (end for end, name in enumerate(folders, 1) if name.lower() in _TEST_DIRECTORIES)
    return next(("/".join(folders[:end]) for end in ends), None)


def _looks(words: list[str]) -> bool:
    return any(_base(word) in _LOOKERS for word in words[:3])


def _without_settings(words: list[str]) -> list[str]:
    """Return `words` without leading `NAME=value`, and without the variable of a `for`."""
    if words[:1] == ["for"] and "in" in words:
        words = ["for", *words[words.index("in") + 1 :]]
    while words and re.match(r"[A-Za-z_]\w*=", words[0]):
        words = words[1:]
    return words


def _base(word: str) -> str:
    return word.rpartition("/")[2]


def _path(word: str) -> str | None:
    """Return the path that `word` may name: of `tests/a.py::test_b`, `--config=x.ini`, `tests/*.sh`."""
    text = word.partition("=")[2] if word.startswith("-") else word
    text = text.partition("::")[0].removeprefix("./")
    if is_among_tests(text):
        # Of tests/*.sh the directory is the input.
        text = re.sub(r"/[^/]*[*?\[].*", "", text)
    if not text or text.startswith(("-", "/", "..")) or set(text) & set("$`*?[]{}<>|&;\n\0"):
        return None
    return text.rstrip("/") or None


def joined(several: Iterable[InputFiles]) -> InputFiles:
    """Return all of `several`, each name once."""
    columns = zip(*several, strict=True)
    return InputFiles(*(tuple(dict.fromkeys(chain.from_iterable(column))) for column in columns))


def of_script(path: str, text: str) -> InputFiles:
    """Return the check inputs of a shell script, a Makefile or the scripts of a package.json."""
    if _base(path) == "package.json":
        lines = _node_scripts(text)
    else:
        lines = [_INCLUDE.sub("sh ", line.strip().lstrip("@-+")) for line in text.splitlines()]
    return joined(of(line) for line in lines if line and not line.startswith("#"))


def _node_scripts(text: str) -> list[str]:
    try:
        scripts = json.loads(text).get("scripts")
    except (ValueError, AttributeError, RecursionError):
        return []
    return [line for line in scripts.values() if isinstance(line, str)] if isinstance(scripts, dict) else []


def is_partial(name: str) -> bool:
    """Return whether only a part of the file called `name` is a check input."""
    return name.rpartition("/")[2] in _PARTS


def part(name: str, content: bytes) -> bytes | None:
    """Return the part of the file called `name` that a check depends on; None if none does."""
    reader = _PARTS.get(name.rpartition("/")[2])
    if not reader:
        return content
    deciding = reader(content.decode("utf-8", "surrogateescape"))
    return deciding.encode("utf-8", "surrogateescape") or None


def _sections(text: str, pattern: re.Pattern[str]) -> str:
    kept, section = [], ""
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if header := _SECTION.match(line):
            section = header[1].replace('"', "").replace("'", "")
        # In TOML a key may carry the name of its section: tool.pytest.ini_options.addopts = …
        if pattern.match(f"{section}.{line.strip()}".lstrip(".")):
            kept.append(line.rstrip())
    return "\n".join(kept)


def _node(text: str) -> str:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(document, dict):
        return text
    kept = {key: document[key] for key in _NODE_KEYS if key in document}
    return json.dumps(kept, sort_keys=True) if kept else ""


def _without(text: str, pattern: str) -> str:
    """Return `text` without what `pattern` matches, how its lines are indented, and empty ones."""
    return "\n".join(filter(None, map(str.strip, re.sub(pattern, "", text).splitlines())))


_PARTS: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {
        **dict.fromkeys(_PYTHON.split()[:3], lambda text: _sections(text, _PYTHON_SECTIONS)),
        "Cargo.toml": lambda text: _sections(text, _CARGO_SECTIONS),
        "package.json": _node,
        "go.mod": lambda text: _without(text, _GO_FREE),
        "pom.xml": lambda text: _without(text, _POM_FREE),
        "CMakeLists.txt": lambda _: "",
        **dict.fromkeys(("build.gradle", "build.gradle.kts"), lambda text: _without(text, _GRADLE_FREE)),
    }
)


def why_vacuous(command: str, has: Callable[[str, str], bool] = lambda _word, _file: False) -> str | None:
    """Return why `command` cannot fail, as a phrase; None if that is not certain.

    `has` tells whether a file of the project contains a text already.
    """
    *before, (last, end) = typed.simple_commands(command)
    while before and not last and before[-1][1] in _AFTER_ANOTHER:
        *before, (last, _) = before
    operator = before[-1][1] if before else ""
    # Before any other, such as `&&`, a failure still counts.
    decides = not end and operator in ("", "|", "||", *_AFTER_ANOTHER)
    words = [word for each, _ in before for word in each]
    set_e = (word == "set" and re.match(r"-\w*e", flag) for word, flag in pairwise(words))
    if not last or not decides or not _ENDS_EARLY.isdisjoint(words) or any(set_e):
        return None
    name = last[0].rpartition("/")[2]
    if last[:2] == ["exit", "0"] or name in _ALWAYS:
        return (
            f"it ends with `{' '.join(last[:2])}`, which never fails" if operator else f"`{name}` never fails"
        )
    if operator == "|" and name in _PAGERS and "pipefail" not in command:
        return f"of a pipe only its last program counts, and `{name}` does not fail"
    if not operator and name == "grep" and (found := _searched(last)) and has(*found):
        return f"{found[1]} has {found[0]!r} already"
    return None


def _searched(words: list[str]) -> tuple[str, str] | None:
    """Return the text and the file of a plain `grep -q TEXT FILE`."""
    plain = [word for word in words[1:] if not word.startswith("-")]
    inverted = any(word.startswith("-") and set("vLc") & set(word) for word in words[1:])
    return (plain[0], plain[1]) if len(words) >= _GREP and len(plain) == len("ab") and not inverted else None
