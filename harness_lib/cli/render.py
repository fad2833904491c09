"""A reply or an error as text for people and agents, or as the JSON object; both say the same."""

from __future__ import annotations

import json

from harness_lib.cli.screen import Screen
from harness_lib.errors import HarnessError
from harness_lib.ops.reply import Reply


def reply(found: Reply, screen: Screen) -> int:
    """Show `found` and return its exit code; the text ends with the next command."""
    if screen.json:
        screen.data(_dump(found.document()))
        return int(found.exit)
    for warning in found.warnings:
        screen.talk(f"warning: {warning}")
    if found.message:
        screen.data(found.message)
    if found.next:
        screen.data(f"next: {found.next}")
    return int(found.exit)


def error(problem: HarnessError, verb: str, screen: Screen) -> int:
    """Show why `verb` failed and what to do, and return the exit code."""
    if screen.json:
        screen.data(_dump(_failure(problem, verb)))
        return int(problem.exit_code)
    screen.talk(f"{problem.kind}: {problem.message}")
    if problem.hint:
        screen.talk(f"hint: {problem.hint}")
    return int(problem.exit_code)


def _failure(problem: HarnessError, verb: str) -> dict[str, object]:
    return {
        "ok": False,
        "verb": verb,
        "exit": int(problem.exit_code),
        "session": None,
        "task": None,
        "stop": None,
        "next": None,
        "message": problem.message,
        "error": {"kind": problem.kind, "message": problem.message, "hint": problem.hint},
    }


def _dump(document: object) -> str:
    # Names of files that are not UTF-8 carry lone surrogates, which no UTF-8 stream takes.
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()
