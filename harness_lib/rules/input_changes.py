"""Find the check inputs among the files that an attempt has changed, and files that look like secrets.

Check inputs are what a check names, its runner's settings, tests and the files beside them.
They do not include products that a check only runs, and files that the task asks to change.
Source: docs/design.md, "The second check".
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import NamedTuple

from harness_lib.rules import input_files
from harness_lib.text import Strings, words_of

_SHELL = words_of("sh bash zsh bats mk make")
_MAKEFILES = words_of("Makefile makefile GNUmakefile justfile Justfile")
# Programs in these languages are products, unless their names say that they check something.
_CODE = words_of("py js mjs cjs ts tsx jsx rb pl php lua go rs java kt c h cc cpp cs swift")
# Files that may change beside new tests without being their subject.
_DOCUMENTS = words_of("md rst txt adoc lock")
_CHECKING = (
    r"(?i)(?:^|[^a-z])(?:check|test|spec|verif|validat|lint|smoke|assert|ci|e2e|golden|expect|accept|judge)"
)
_SKIPS = (
    r"(?i)\bskip|\bxfail|\btodo\b|\.only\b|\bx(?:it|describe|test)\b|@(?:Disabled|Ignore)\b|#\[ignore"
    r"|pytest\.exit"
)
_CHANGE = (
    r"(?i)\b(?:add|append|extend|chang|edit|updat|rewrit|renam|mov|delet|remov|creat|split|refactor|convert|migrat"
    r"|replac|modif|adapt|port|regenerat|bump|clean|simplif|fix|correct|writ|put|insert|adjust|speed|document)"
    r"\w*\b"
)
_TEST_NAME = r"(?i)(?:^|[^a-z])(?:test|spec)"
# "Update the tests", "adapt the fixtures and snapshots"; not "rename the flag and add tests".
_CHANGE_OF_TESTS = (
    r"(?i)\b(?:updat|adapt|adjust|chang|rewrit|renam|mov|refactor|convert|migrat|port|regenerat|renew|refresh|split"
    r"|simplif|format)\w*\s+(?:(?:all|and|the|its|their|our|docs?|existing|affected|stored|unit|integration)\s+)*"
    r"(?:tests|specs|test suite|fixtures|snapshots|golden files|expected (?:output|result|value|file)s?)"
    r"(?![\w/.-]*\w)"
)
_TESTING = r"(?i)\b(?:tests?|testing|tested|specs?|cover(?:s|age)?)\b"
_GREEN = r"(?i)\b(?:pass(?:es|ing)?|green|succeeds?)\b"
_SENTENCES = r"(?<=[.!?;])\s+|\n"
CONFTEST = "conftest.py"
# In a file name these words say that the values are made up.
_EXAMPLES = frozenset(
    ("example", "examples", "sample", "template", "tmpl", "tpl", "dist", "default", "defaults", "schema")
)
_NAMES = r"""(?xi)
    \.env (\..*)?
    | .* \.pem
    | id_ [^.]*                                             # an SSH key; a source file has an ending
    | id_ (rsa|dsa|ecdsa|ed25519) [^.]* \. (?!pub$) .*
    | credentials .* \.json
    | \.netrc
    """
# A variable of the environment (`${NPM_TOKEN}`) is not a token, and neither is an empty value.
_NPM_TOKEN = rb"(?i)(?:_authToken|_auth|_password)\s*=[ \t]*(?!\$\{)\S"
NPM = ".npmrc"

_KEYS = {
    "a private key": re.compile(rb"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----"),
    "an AWS key": re.compile(rb"\bAKIA[0-9A-Z]{16}\b"),
    "a GitHub token": re.compile(rb"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{60})"),
    "a Slack token": re.compile(rb"\bxox[abeoprs]-[A-Za-z0-9-]{10}"),
    "a key of a model's provider": re.compile(rb"\bsk-[A-Za-z0-9_-]{20}"),
}

# Mode and object before and after; None if there is no file.
Change = tuple["tuple[str, str] | None", "tuple[str, str] | None"]


class Asked(NamedTuple):
    """The inputs of a check, and the directory in which it runs ("" is the top)."""

    inputs: input_files.InputFiles
    cwd: str = ""


class Found(NamedTuple):
    """The check inputs that an attempt has changed: `old` ones that the base had, `new` settings of a runner.

    `beside` are new files among the tests, which may need these as they are now. `free` are old ones that
    may be changed: the task asks for a change of tests, or they only help tests that are all new.
    """

    old: Strings = ()
    new: Strings = ()
    beside: Strings = ()
    free: Strings = ()

    def __bool__(self) -> bool:
        """Say whether there is a check input to put back."""
        return bool(self.old or self.new)

    @property
    def all(self) -> Strings:
        """Return the files that the second check restores from the base."""
        return (*self.old, *self.new, *self.beside)


def find(
    changed: Mapping[str, Change],
    asked: Asked,
    words: str,
    was_there: Callable[[str], bool],
    library: Collection[str] = frozenset(),
) -> Found:
    """Return the inputs of the check `asked` among the files that an attempt has changed.

    `words` are the task's own; `was_there` says of a file or directory whether the base had it.
    `library` names the modules of Python's standard library: a new module of the project would be loaded in
    their place.
    """
    named = [joined(asked.cwd, name) for name in asked.inputs.named]
    config = [*(joined(asked.cwd, glob) for glob in asked.inputs.config), *asked.inputs.config]
    settings, new_settings = _pattern(config), _pattern(config, library)
    tests = _pattern(asked.inputs.tests)
    are_tests = bool(asked.inputs.tests) or any(map(input_files.is_among_tests, named))
    is_python = any(glob.endswith(".py") for glob in asked.inputs.tests)
    # A CMakeLists.txt names new tests: without them nothing is built.
    are_listed = "ctest" in asked.inputs.programs
    old, fresh, beside = [], [], []
    for path, (before, _) in changed.items():
        is_test = tests.fullmatch(path) or input_files.is_among_tests(path)
        if is_named_for_change(path, words):
            continue
        if not before:
            # In a directory that is new itself, settings can only be for tests that are new, too.
            # Python loads a module beside tests in the place of the product's, or before a test of a package.
            module = is_python and path.endswith(".py") and not tests.fullmatch(path)
            place = (input_files.tests_above(path) if module else None) or posixpath.dirname(path)
            is_loaded = new_settings.fullmatch(path) or (module and input_files.is_among_tests(path))
            if is_loaded and was_there(place):
                fresh.append(path)
            elif is_test and path not in named and not are_listed:
                beside.append(path)
            continue
        is_named = any(_is_within(path, name) for name in named)
        is_input = settings.fullmatch(path) or tests.fullmatch(path)
        if is_input or (are_tests and is_test) or (is_named and _is_input_by_name(path)):
            old.append(path)
    free = [path for path in old if _asks_for_change_of_tests(path, words)]
    scripts = [name for name in config if "*" not in name and is_script(name)]
    if _has_written_all(changed, named) and not any(map(was_there, (*named, *scripts))):
        fresh = []
        free = [path for path in old if path in free or _helps_tests(path)]
    old = [path for path in old if path not in free]
    return Found(tuple(old), tuple(fresh), tuple(beside) if old or fresh else (), tuple(free))


class Fresh(NamedTuple):
    """The tests that an attempt has added to what its check runs, and the new files that they come with.

    `alone`: those of an attempt that has changed nothing else, though its task does not speak of tests.
    """

    tests: Strings = ()
    beside: Strings = ()
    alone: Strings = ()


def fresh(
    changed: Mapping[str, Change], asked: Asked, was_there: Callable[[str], bool], words: str = ""
) -> Fresh:
    """Return the new tests that check an attempt, if no other test changed; `words` are the task's own."""
    named = [joined(asked.cwd, name) for name in asked.inputs.named]
    tests = _pattern(joined(asked.cwd, glob) for glob in asked.inputs.tests)
    settings = _pattern(joined(asked.cwd, glob) for glob in asked.inputs.config)
    # A runner that is told where its tests are runs no others.
    places = [
        name
        for name in named
        if (tests.fullmatch(name) or input_files.is_among_tests(f"{name}/"))
        and (was_there(name) or any(_is_within(path, name) for path in changed))
    ]
    made, beside, has_product = [], [], False
    for path, (before, _) in changed.items():
        is_run = tests.fullmatch(path) and (not places or any(_is_within(path, place) for place in places))
        is_input = is_run or (path in named and _is_input_by_name(path))
        if before and (is_input or input_files.is_among_tests(path)):
            return Fresh()
        if is_input:
            made.append(path)
        elif input_files.is_among_tests(path) or settings.fullmatch(path) or tests.fullmatch(path):
            beside += [path] if not before else []
        else:
            has_product = has_product or not _is_document(path)
    if has_product and made:
        return Fresh(tuple(made), tuple(beside))
    return Fresh() if re.search(_TESTING, words) else Fresh(alone=tuple(made))


def may_be_input(changed: Mapping[str, Change]) -> bool:
    """Return whether a file that was there and has changed may be an input of any check."""
    return any(
        before is not None
        and (input_files.is_among_tests(path) or _is_input_by_name(path) or _of_any_runner().fullmatch(path))
        for path, (before, _) in changed.items()
    )


@cache
def _of_any_runner() -> re.Pattern[str]:
    runners = input_files.RUNNERS.values()
    globs = " ".join(f"{runner.config} {runner.tests}" for runner in runners).split()
    return _pattern(dict.fromkeys(f"**/{glob.removeprefix('**/')}" for glob in globs))


def named_inputs(changed: Mapping[str, Change], asked: Asked, words: str) -> Strings:
    """Return which files of the base that the check `asked` itself names an attempt has changed."""
    named = {joined(asked.cwd, name) for name in asked.inputs.named}
    return tuple(
        path
        for path, (before, _) in changed.items()
        if before
        and path in named
        and _is_input_by_name(path)
        and not is_named_for_change(path, words)
        and not _asks_for_change_of_tests(path, words)
    )


def is_named_for_change(path: str, words: str) -> bool:
    """Return whether `words`, a task's title and description, ask to change the file at `path`.

    "Make tests/test_a.py pass" does not.
    """
    name = path.rpartition("/")[2]
    for sentence in re.split(_SENTENCES, words):
        for match in re.finditer(
            rf"(?<![\w./-]){re.escape(path)}(?![\w/-])|(?<![\w./-]){re.escape(name)}(?![\w/-])", sentence
        ):
            if re.search(_CHANGE, sentence[: match.start()]) and not re.search(_GREEN, sentence):
                return True
    return False


def lost_lines(old: Iterable[str], new: Iterable[str]) -> int:
    """Return how many lines of a check input were removed or changed, plus how many new ones skip a test."""
    before, after = Counter(old), Counter(new)
    lost = sum(count for line, count in (before - after).items() if line.strip())
    return lost + sum(count for line, count in (after - before).items() if re.search(_SKIPS, line))


def _has_written_all(changed: Mapping[str, Change], named: Iterable[str]) -> bool:
    """Return whether the attempt has written files that the check names."""
    new = [path for path, (before, _) in changed.items() if not before]
    return any(_is_within(path, name) for path in new for name in named)


def _helps_tests(path: str) -> bool:
    return input_files.is_among_tests(path) or posixpath.basename(path) == CONFTEST


def _asks_for_change_of_tests(path: str, words: str) -> bool:
    """Return whether the file at `path` belongs to the tests, and `words` ask to change tests in general."""
    if not _helps_tests(path) and not re.search(_TEST_NAME, posixpath.basename(path)):
        return False
    sentences = re.split(_SENTENCES, words)
    return any(re.search(_CHANGE_OF_TESTS, each) and not re.search(_GREEN, each) for each in sentences)


def _is_within(path: str, place: str) -> bool:
    return path == place or path.startswith(f"{place}/")


def _is_document(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name.startswith(".") or name.rpartition(".")[2].lower() in _DOCUMENTS


def _is_input_by_name(path: str) -> bool:
    """Return whether a file that a check names is a check input, not only the product that it runs."""
    name = path.rpartition("/")[2]
    stem, dot, ending = name.rpartition(".")
    if input_files.is_among_tests(path) or re.search(_CHECKING, name):
        return True
    if not dot:
        return name in _MAKEFILES
    return bool(stem) and ending.lower() not in _CODE


def joined(folder: str, name: str) -> str:
    """Return the path of `name`, which is relative to `folder` ("" is the top)."""
    return posixpath.normpath(f"{folder}/{name}") if folder.strip("/") else posixpath.normpath(name)


def is_script(path: str) -> bool:
    """Return whether the file at `path` is a script, by its name."""
    name = path.rpartition("/")[2]
    return (
        name in {"package.json", *_MAKEFILES} or name.rpartition(".")[2].lower() in _SHELL or "." not in name
    )


def let_go(protect: Iterable[str]) -> list[str]:
    """Return the globs of the files that a task's `protect` lets change: those with a `!`."""
    return [glob[1:] for glob in protect if glob.startswith("!")]


def fitting(paths: Iterable[str], globs: Iterable[str]) -> set[str]:
    """Return those of `paths` that git's `globs` match, or a directory above which they match."""
    pattern = _pattern(globs).pattern
    return set(filter(re.compile(f"(?:{pattern})(?:/.*)?").fullmatch, paths))


def _pattern(globs: Iterable[str], library: Collection[str] = frozenset()) -> re.Pattern[str]:
    """Return a regular expression that matches the same paths as git's `globs`."""
    parts = [_expression(glob) for glob in globs]
    if parts and library:
        parts.append(rf"(?:{'|'.join(map(re.escape, sorted(library)))})(?:\.py|/__init__\.py)")
    return re.compile("|".join(parts) or r"(?!)")


def _expression(glob: str) -> str:
    made = ""
    for part in re.split(r"(\*\*/|/\*\*$|\*|\?)", glob):
        made += {"**/": "(?:.*/)?", "/**": "/.*", "*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part))
    return made


def secret(path: str, *, executable: bool = False) -> str | None:
    """Return `path` if it is named like a secret, or the directory `.env` that it is in; else None.

    The content of an `.npmrc` decides, see `has_npm_token`.
    """
    *above, name = path.split("/")
    if ".env" in above:
        return "/".join((*above[: above.index(".env")], ".env"))
    if not re.fullmatch(_NAMES, name) or not _EXAMPLES.isdisjoint(name.lower().split(".")):
        return None
    # A program may be called id_list; nobody executes a key.
    return None if executable and name.lower().startswith("id_") else path


def has_npm_token(content: bytes) -> bool:
    """Return whether the `content` of an `.npmrc` has a token or a password in it."""
    return re.search(_NPM_TOKEN, content) is not None


def key_in(content: bytes) -> str | None:
    """Return the kind of key that `content` seems to have; None for none."""
    return next((kind for kind, pattern in _KEYS.items() if pattern.search(content)), None)
