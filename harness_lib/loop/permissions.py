"""Permission rules: which calls run unasked, which need a question, and which never run.

They are in the `settings.json` of a source, in Claude Code's format: `{"permissions": {"allow": [...], "ask":
[...], "deny": [...]}}`. A rule is a tool with an optional specifier: `Bash(git status:*)`, `Edit(src/**)`.
Deny rules win over ask rules, and those over allow rules. If it is unknown whether a rule matches a command,
an allow rule does not match, and an ask or deny rule leads to a question.
"""

from __future__ import annotations

import fnmatch
import glob
import json
import os
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from harness_lib.errors import ConfigError
from harness_lib.loop import command_rules, disk, shell_words, trust
from harness_lib.system import fs

if TYPE_CHECKING:
    from harness_lib.loop.piped import Json
    from harness_lib.loop.runtime import Runtime

FILE = "settings.json"
INHERITED = "HARNESS_RULES"
DECISIONS = ("deny", "ask", "allow")
_RULE = r"(?s)\s*([\w.*:-]+)\s*(?:\((.*)\))?\s*"
_EDITS = ("edit_file", "replace", "write_file", "Edit", "MultiEdit", "NotebookEdit", "Write")
_READS = ("read_file", "grep", "glob", "Read", "Grep", "Glob", "LS", "NotebookRead")
# The tools that a name of Claude Code covers: those of hs, and its own for the provider `claude`.
_COVERS = {
    "Bash": ("bash", "Bash"),
    "bash": ("bash", "Bash"),
    "Edit": _EDITS,
    "Write": ("write_file", "Write"),
    "Read": _READS,
    "Grep": ("grep", "Grep"),
    "Glob": ("glob", "Glob"),
    "Skill": ("skill", "Skill"),
    "Agent": ("agent", "Agent", "Task"),
    "Task": ("agent", "Agent", "Task"),
}
# Files that a pattern in a command may mean.
_MOST_FOUND = 1000
_LONGEST_PATH = 4096
_PATHS = ("path", "file_path", "notebook_path")
_SEARCHES = frozenset(("grep", "glob", "Grep", "Glob", "LS"))


class RulesError(ConfigError):
    """A `settings.json` is invalid. No call runs, because a rule in it may deny the call."""

    def __init__(self, message: str) -> None:
        super().__init__(f"{message}.", "Correct that file; until then no tool runs.")

    def __str__(self) -> str:
        return self.message.removesuffix(".")


class Rule(NamedTuple):
    """One rule; `home` is the project of its file, "" for the user's own settings."""

    decision: str
    tool: str
    what: str
    text: str
    file: str
    home: str

    def __str__(self) -> str:
        return f"{self.decision} {self.text} ({self.file})"

    def is_for(self, name: str) -> bool:
        """Return whether the rule is about the tool `name`."""
        if self.tool.startswith("mcp__") and name.startswith(f"{self.tool}__"):
            return True
        return name in _COVERS.get(self.tool, ()) or fnmatch.fnmatchcase(name, self.tool)


class Ruling(NamedTuple):
    """The decision of the rules about a call, "" if no rule matches, and the reason."""

    decision: str = ""
    reason: str = ""


def rules(runtime: Runtime) -> list[Rule]:
    """Return the rules in force. Raises RulesError.

    Ask and deny rules stay in force until the run ends. Those of a project that was ever trusted also apply
    after its files have changed. So no call can remove them.
    """
    usable = {str(runtime.home), *trust.usable(runtime)}
    allowing: list[Rule] = []
    if "restricting rules" not in runtime.kept:
        runtime.kept["restricting rules"] = _inherited(runtime) if runtime.env.get(INHERITED) else {}
    restricting: dict[Rule, None] = runtime.kept["restricting rules"]
    for source in dict.fromkeys([str(runtime.home), *runtime.sources]):
        if source not in usable and os.path.realpath(source) not in trust.load(runtime):
            continue
        read = disk.remembered(runtime.kept, Path(source, FILE), _read)
        if isinstance(read, RulesError):
            raise read
        file, home = str(Path(source, FILE)), str(trust.project_of_source(runtime, source) or "")
        for rule in (Rule(*parts, file, home) for parts in read or ()):
            if rule.decision != "allow":
                restricting[rule] = None
            elif source in usable:
                allowing.append(rule)
    return [*restricting, *allowing]


def _inherited(runtime: Runtime) -> dict[Rule, None]:
    """Return the rules of the run that started this one as a subagent."""
    try:
        return {Rule(*map(str, parts)): None for parts in json.loads(runtime.env[INHERITED])}
    except (ValueError, TypeError) as error:
        raise RulesError(f"{INHERITED} holds no rules: {error}") from error


def for_subagents(runtime: Runtime) -> dict[str, str]:
    """Return the environment variable that passes the ask and deny rules to a subagent."""
    return {INHERITED: json.dumps([rule for rule in rules(runtime) if rule.decision != "allow"])}


def decide(runtime: Runtime, call: Json) -> Ruling:
    """Return the decision of the rules about `call`. Raises RulesError."""
    name, tool_input = str(call.get("name") or ""), call.get("input") or {}
    every = rules(runtime)
    if not every:
        return Ruling()
    hidden: Rule | None = None
    for decision in ("deny", "ask"):
        for rule in every:
            covers = rule.decision == decision and _restricts(runtime, rule, name, tool_input)
            if covers:
                return Ruling(decision, f"the rule {rule}")
            if covers is None:
                hidden = hidden or rule
    if hidden:
        return Ruling("ask", f"it cannot be told whether the rule {hidden} covers it")
    files = {os.path.realpath(rule.file) for rule in every}
    if files & {_real(runtime, path) for path in _written(runtime, name, tool_input)}:
        return Ruling("ask", f"it would change rules about what may run ({FILE})")
    allowing = [rule for rule in every if rule.decision == "allow" and rule.is_for(name)]
    return Ruling("allow" if allowing and _allows(runtime, allowing, name, tool_input) else "")


def allow(runtime: Runtime, text: str) -> None:
    """Add the allow rule `text` to the user's settings. Raises RulesError, OSError."""
    from harness_lib.loop import keys  # noqa: PLC0415 (for its lock, once the user wants a rule)

    path = Path(os.path.realpath(runtime.home / FILE))
    with keys.held(runtime):
        read = _read(path) if path.exists() else None
        if isinstance(read, RulesError):
            raise read
        settings = json.loads(path.read_text(encoding="utf-8-sig")) if path.exists() else {}
        allowed = settings.setdefault("permissions", {}).setdefault("allow", [])
        if text not in allowed:
            allowed.append(text)
            fs.write(path, f"{json.dumps(settings, indent=2, ensure_ascii=False)}\n".encode())
    runtime.notice(f"saved in {path}: {text}")


def readable(runtime: Runtime) -> Callable[[str], bool]:
    """Return a function that tells whether no ask or deny rule covers reading a path. Raises RulesError."""
    denying = [rule for rule in rules(runtime) if rule.decision != "allow" and rule.is_for("read_file")]
    return lambda path: not any(not rule.what or _is_at(runtime, rule, path) for rule in denying)


def _read(path: Path) -> list[tuple[str, str, str, str]] | RulesError:
    """Return decision, tool, specifier and text of each rule in `path`, or the error in the file."""
    try:
        settings = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        return RulesError(f"{path} is not readable JSON: {error}")
    permissions = settings.get("permissions", {}) if isinstance(settings, dict) else None
    if not isinstance(permissions, dict):
        return RulesError(f'{path}: "permissions" must be an object of allow, ask and deny')
    found = []
    for decision in DECISIONS:
        texts = permissions.get(decision, [])
        if not isinstance(texts, list):
            return RulesError(f"{path}: permissions.{decision} must be a list of rules")
        for text in texts:
            parsed = re.fullmatch(_RULE, text) if isinstance(text, str) else None
            what = ((parsed and parsed[2]) or "").strip()
            if not parsed or what.startswith("!"):
                return RulesError(
                    f"{path}: permissions.{decision}: {text!r} is not a rule like Bash(git status:*)"
                )
            found.append((decision, parsed[1], "" if what in {"*", ":*"} else what, text.strip()))
    return found


def _restricts(runtime: Runtime, rule: Rule, name: str, tool_input: Json) -> bool | None:
    """Return whether an ask or deny rule matches the call; None if that is unknown."""
    command = tool_input.get("command") if name in _COVERS["Bash"] else None
    if isinstance(command, str) and rule.what and (rule.is_for("read_file") or rule.is_for("write_file")):
        return _opens(runtime, rule, command)
    if not (rule.is_for(name) and rule.what):
        return rule.is_for(name)
    if isinstance(command, str):
        answers = [command_rules.names(rule.what, simple) for simple in shell_words.every(command)]
        return command.strip() == rule.what or True in answers or (None if None in answers else False)
    if name in _EDITS + _READS:
        paths = _paths(runtime, name, tool_input)
        # A tool of a source may use other names for them.
        return not paths or any(_is_at(runtime, rule, path) for path in paths)
    # The meaning of any other specifier is unknown, so it covers the call.
    return name not in _COVERS["Skill"] or fnmatch.fnmatchcase(_skill(tool_input), rule.what)


def _opens(runtime: Runtime, rule: Rule, command: str) -> bool | None:
    """Return whether `command` names a file that a rule about files matches; None if that is unknown."""
    hidden = False
    for path, is_written in command_rules.files_in(command):
        if is_written or rule.is_for("read_file"):
            if _is_at(runtime, rule, path):
                return True
            hidden |= is_written and shell_words.HIDDEN in path
    return None if hidden else False


def _written(runtime: Runtime, name: str, tool_input: Json) -> Iterator[str]:
    """Yield the files that a call may write, judging by its input."""
    if name in _EDITS:
        yield from _paths(runtime, name, tool_input)
    elif name in _COVERS["Bash"]:
        named = command_rules.files_in(str(tool_input.get("command") or ""))
        yield from (path for path, is_written in named if is_written and shell_words.HIDDEN not in path)


def _allows(runtime: Runtime, allowing: list[Rule], name: str, tool_input: Json) -> bool:
    if name in _COVERS["Bash"]:
        command = str(tool_input.get("command") or "")
        if any(rule.what in {"", command.strip()} for rule in allowing):
            return True
        simple = shell_words.written(command)
        return bool(simple) and all(
            each.plain
            and not _decides(runtime, [part for word in each.words for part in shell_words.values(word)])
            and any(command_rules.covers(rule.what, each) for rule in allowing)
            for each in simple
        )
    if name in _EDITS + _READS:
        paths = _paths(runtime, name, tool_input)
        if not paths or (name in _EDITS and _decides(runtime, paths)):
            return False
        return all(any(_allows_path(runtime, rule, name, path) for rule in allowing) for path in paths)
    skill = _skill(tool_input) if name in _COVERS["Skill"] else ""
    return any(not rule.what or (skill and fnmatch.fnmatchcase(skill, rule.what)) for rule in allowing)


def _skill(tool_input: Json) -> str:
    return str(tool_input.get("name") or tool_input.get("skill") or "")


def _decides(runtime: Runtime, paths: list[str]) -> bool:
    """Return whether one of `paths` is in a directory that decides what git or hs runs and allows."""
    places = [os.path.realpath(source) for source in {*runtime.sources, str(runtime.home)}]
    real = [_real(runtime, path) for path in paths]
    return any(
        {".git", ".harness"} & set(Path(path).parts)
        or any(_below(place, path) is not None for place in places)
        for path in real
    )


def _paths(runtime: Runtime, name: str, tool_input: Json) -> list[str]:
    named = [tool_input[key] for key in _PATHS if isinstance(tool_input.get(key), str)]
    return named or ([str(runtime.work_directory)] if name in _SEARCHES else [])


def _real(runtime: Runtime, path: str) -> str:
    return os.path.realpath(runtime.place(path.replace("\0", "")))


def _is_at(runtime: Runtime, rule: Rule, path: str) -> bool:
    """Return whether an ask or deny rule matches `path`, as it is named or where it leads."""
    full = str(runtime.place(path.replace("\0", "")))
    # A pattern of the shell stands for the files that it matches; one longer than any path takes minutes.
    is_pattern = any(c in path for c in "*?[") and len(path) < _LONGEST_PATH
    found = list(islice(glob.iglob(full), _MOST_FOUND)) if is_pattern else []  # noqa: PTH207 (an absolute one)
    for each in (full, *found):
        paths = {os.path.normpath(each), os.path.realpath(each)}
        if rule.what.endswith("/**") and not is_pattern:
            # A rule about all files of a directory covers the directory.
            paths |= {f"{path}/x" for path in paths}
        anchored = _anchored(runtime, rule, strict=True)
        below = [
            (pattern, part) for base, pattern in anchored for path in paths if (part := _below(base, path))
        ]
        # On a file system that ignores case, another spelling is the same file.
        if any(disk.matcher(p)(part) or disk.matcher(p.casefold())(part.casefold()) for p, part in below):
            return True
    return False


def _allows_path(runtime: Runtime, rule: Rule, name: str, path: str) -> bool:
    """Return whether an allow rule matches the file that `path` leads to."""
    if not rule.what:
        return True
    real = _real(runtime, path)
    for base, pattern in _anchored(runtime, rule, strict=False):
        below = _below(os.path.realpath(base), real)
        if below is None:
            continue
        if below and disk.matcher(pattern)(below):
            return True
        # A search reads every file of the directory.
        if name in _SEARCHES and pattern.endswith("/**") and disk.matcher(pattern)(f"{below}/x".lstrip("/")):
            return True
    return False


def _anchored(runtime: Runtime, rule: Rule, *, strict: bool) -> Iterator[tuple[str, str]]:
    """Yield each base directory of a rule with its pattern; `strict` yields every possible base."""
    here = str(runtime.work_directory)
    root = rule.home or str(trust.project_root(runtime, runtime.work_directory))
    what = rule.what
    if what.startswith("//"):
        yield "/", what[1:]
    elif what == "~" or what.startswith("~/"):
        yield os.path.expanduser("~"), what[1:] or "/"  # noqa: PTH111
    elif what.startswith("/"):
        yield root, what
        if strict:
            yield "/", what
    else:
        pattern = f"/{what[2:]}" if what.startswith("./") else what
        for base in dict.fromkeys([here, root] if strict else [here]):
            yield base, pattern
        if strict and "/" not in what.rstrip("/"):
            # A bare name covers every file of that name.
            yield "/", pattern


def _below(base: str, path: str) -> str | None:
    """Return `path` as seen from the directory `base`, "" for itself; None where it is not below."""
    if path == base:
        return ""
    head = base.rstrip("/") + "/"
    return path[len(head) :] if path.startswith(head) else None
