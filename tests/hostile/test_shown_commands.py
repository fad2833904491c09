"""What harness says to type can be typed: whatever an id holds, a shell takes it as one word."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from harness_lib import typed
from harness_lib.cli import parser
from harness_lib.cli.parser import known
from tests.conftest import CHECKOUT
from tests.hookio.conftest import EVENTS, ME, Ring
from tests.run_to_end import run_to_end
from tests.system.git.gitrepo import put
from tests.verbs.project import Agent, Project, make

# Each begins a file named PWNED where a shell takes it for more than a word.
NAMES = (
    "$(touch${IFS}PWNED)",
    "`touch${IFS}PWNED`",
    "a;touch${IFS}PWNED",
    "a|touch${IFS}PWNED",
    "a&touch${IFS}PWNED",
    "a>PWNED",
    "a'$(touch${IFS}PWNED)'b",
    'a"$(touch${IFS}PWNED)"b',
)
PROGRAMS = ("harness", "git")


@lru_cache
def _verbs() -> frozenset[str]:
    listed = subprocess.run(["git", "--list-cmds=main"], capture_output=True, text=True, check=True)
    return frozenset(("-C", *parser.known(), *listed.stdout.split()))


def commands(text: str) -> Iterator[str]:
    """Yield what a reader of `text` would type: from `harness VERB` or `git VERB` to where its words end."""
    for match in re.finditer(rf"(?<![\w.-])(?:\S*/)?({'|'.join(PROGRAMS)}) (\S+)", text):
        if match[2].rstrip(".,;:)") in _verbs():
            yield _words(text[match.start() :].split("\n", 1)[0])


def _words(line: str) -> str:
    """Return the beginning of `line` that is a command: to a word that ends with a mark of the sentence."""
    end, quote = 0, ""
    for at, letter in enumerate(line):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter != " " and not line[at:].split(" ", 1)[0].strip(".,;:)"):
            return line[:at]
        end = at + 1
    return line[:end]


class Shell:
    """A `sh` whose harness and git write down how they were called, and do nothing."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._heard = place / "heard"
        programs = place / "bin"
        programs.mkdir(parents=True)
        for name in PROGRAMS:
            stub = programs / name
            put(stub, f'#!/bin/sh\nprintf "%s\\0" "$@" > {shlex.quote(str(self._heard))}\n', executable=True)
        self._env = {"PATH": f"{programs}:{os.environ['PATH']}"}

    def type(self, command: str) -> list[str]:
        """Return the words that the program got; fails where anything else was run, or nothing."""
        self._heard.unlink(missing_ok=True)
        (self.place / "here").mkdir(exist_ok=True)
        done = run_to_end(["sh", "-c", command], cwd=self.place / "here", env=self._env)
        assert (done.returncode, done.stderr) == (0, ""), (command, done)
        assert not list((self.place / "here").iterdir()), f"typing this ran a command: {command}"
        return self._heard.read_bytes().decode().split("\0")[:-1]


def texts(value: object) -> Iterator[str]:
    """Yield every text of a JSON document that is shown to somebody; `task` is the list's own data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in ("task", "tasks", "id", "title"):
                yield from texts(item)


def spoken(out: str) -> list[str]:
    """Return the texts of what a program printed: of a JSON document its texts, else all."""
    try:
        return list(texts(json.loads(out)))
    except ValueError:
        return [out]


OF_A_TASK: tuple[tuple[str, ...], ...] = (
    ("show",),
    ("validate",),
    ("claim",),
    ("checkpoint", "1/2", "half"),
    ("note", "mind the gap"),
    ("note", ""),
    ("edit", "--title", "Another"),
    ("edit", "--title", ""),
    ("edit", "--validate", "true"),
    ("edit", "--cwd", "nowhere"),
    ("finish",),
    ("fail", "--category", "TASK_EXEC", "--message", "gave up"),
    ("release",),
    ("rescue", "show"),
    ("rescue", "apply"),
    ("rescue", "drop"),
    ("retry",),
    ("accept",),
    ("return", "no"),
    ("remove",),
)
OF_THE_LIST: tuple[tuple[str, ...], ...] = (
    ("status", "--all"),
    ("check", "--all"),
    ("graph", "--all"),
    ("log",),
    ("tidy",),
    ("trust", "--all"),
    ("doctor",),
    ("start",),
    ("claim", "--dry-run"),
    ("claim",),
    ("recover",),
    ("finish",),
    ("checkpoint", "1/2", "half"),
    ("validate", "--all"),
    ("beat",),
    ("note", "", ""),
    ("export", "--tick", "plan.md"),
    ("rescue", "list"),
    ("edit", "--mode", "concurrent"),
    ("budget",),
    ("report", "--all"),
    ("config",),
    ("pause",),
    ("stop",),
    ("check", "--repair"),
)


def tasks() -> list[dict[str, Any]]:
    """Return a task in every state that a command is shown for, each with a name of its own."""
    a, b, c, d, e, f, g, h = NAMES
    return [
        {"id": a, "status": "pending", "validation": {"command": "true"}},
        {"id": b, "status": "pending"},
        {"id": c, "status": "failed", "attempts": 3, "error_log": ["[TASK_EXEC] no"]},
        {"id": d, "status": "pending", "depends_on": [c]},
        {"id": e, "status": "pending", "depends_on": [e]},
        {"id": f, "status": "pending", "validation": {"command": "false"}, "max_attempts": 1},
        {"id": g, "status": "pending", "validation": {"command": "true", "cwd": "nowhere"}},
        {"id": h, "status": "completed", "title": "Done"},
    ]


@pytest.fixture
def hostile(tmp_path: Path) -> Iterator[tuple[Project, Agent]]:
    project = make(tmp_path / "repo")
    project.edit(tasks=tasks())
    yield project, project.agent("agent", CLAUDE_CODE_SESSION_ID=ME)
    project.close()


def _all_that_is_said(project: Project, agent: Agent, hook: Ring) -> Iterator[str]:
    """Yield every text that verbs and hooks say about this list, as it goes through its states."""

    def say(*argv: str) -> Iterator[str]:
        said = agent(*argv, "--json")
        assert said.code != 70, said.text
        yield from spoken(said.out)
        yield said.err

    def hooks() -> Iterator[str]:
        for name in EVENTS:
            heard = hook(name, {"agent_id": NAMES[0], "tool_input": {"file_path": str(project.file)}})
            yield from (*spoken(heard.out), heard.err)

    for argv in OF_THE_LIST:
        yield from say(*argv)
        if argv[0] in ("start", "claim"):
            yield from hooks()
            project.put("work.txt", f"{argv}\n")
    for name in NAMES:
        for verb, *rest in OF_A_TASK:
            words = [verb, *rest[:1], name] if verb == "rescue" else [verb, name, *rest]
            yield from say(*words)
            if verb == "claim":
                project.put("work.txt", f"{name}\n")
        yield from say("status", "--all")
    yield from hooks()


def test_no_shown_command_runs_an_id(hostile: tuple[Project, Agent], hook: Ring, tmp_path: Path) -> None:
    project, agent = hostile
    shell, shown = Shell(tmp_path / "shell"), set()
    for text in _all_that_is_said(project, agent, hook):
        shown |= set(commands(text))

    named = [each for each in shown if "PWNED" in each]
    assert len(named) > 30, "the commands are no longer found in what is said"
    for command in sorted(shown):
        program, *words = shlex.split(command)
        assert Path(program).name in ("harness", "git")
        if program in ("harness", "git"):
            assert shell.type(command) == words
        for word in (each for each in words if "PWNED" in each):
            assert word in NAMES or word.startswith("refs/harness/"), command


def test_no_list_says_what_is_to_be_typed(hostile: tuple[Project, Agent]) -> None:
    """It may have come with a clone, and agents type what they are shown."""
    project, agent = hostile
    own = {
        "halt": "CONFIG: x",
        "halt_kind": "CONFIG",
        "halt_about": ["touch PWNED", "harness x; touch PWNED"],
    }
    project.write({"id": "one", "title": "x", "validation": {"command": "true"}, **own})

    assert agent.ok("show", "one")["next"] == "harness retry one"
    decisions = agent.ok("report")["report"]["decisions"]
    assert [decision["commands"] for decision in decisions] == [["harness retry one"]]


def test_a_name_with_every_kind_of_letter_stays_one_word(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "shell")
    for name in (*NAMES, "", "a b", "~", "#", "!", "*", "a\nb", "é", "-x", *map(chr, range(1, 300))):
        assert shell.type(typed.harness("show", name)) == ["show", name]
        assert shlex.split(typed.git("-C", name)) == ["git", "-C", name]


def _templates(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of each text of a module, a NUL where something is put in."""
    parts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts |= {id(value) for value in node.values}
            texts = [str(v.value) if isinstance(v, ast.Constant) else "\0" for v in node.values]
            yield node.lineno, "".join(texts)
        elif isinstance(node, ast.BinOp) and isinstance(node.left, ast.Constant):
            yield node.lineno, str(node.left.value) + "\0"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.lineno, re.sub(r"\{\w*\}|%s", "\0", node.value)


def test_no_command_is_glued_together_by_hand() -> None:
    """`typed` makes them: a name that stands in a text of ours behind `harness VERB` would not be quoted."""
    verbs = "|".join(re.escape(verb) for verb in sorted(_verbs()))
    glued = re.compile(rf"(?:(?:^|[^\w./-])(?:harness|git)|\0) (?:{verbs})(?: [^\s\0():;,.]+)* '?\0")
    by_hand = [
        f"{path.relative_to(CHECKOUT)}:{line}: {glued.search(text)[0]!r}"  # type: ignore[index]
        for path in sorted((CHECKOUT / "harness_lib").rglob("*.py"))
        for line, text in _templates(ast.parse(path.read_text()))
        if glued.search(text)
    ]
    assert by_hand == []


def test_every_verb_is_asked() -> None:
    asked = {verb for verb, *_ in (*OF_A_TASK, *OF_THE_LIST)}
    # These say nothing of a task that is in a list, or are asked in tests of their own.
    assert {*known()} - asked == {"init", "add", "import", "run", "hooks", "demo", "store"}
