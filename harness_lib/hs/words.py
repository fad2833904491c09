"""Understand what a person types beside plain words: /NAME, @FILE and !COMMAND."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from harness_lib.loop import disk, processes, trust
from harness_lib.loop.failures import Interrupted
from harness_lib.loop.plugins import Result
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions import history
from harness_lib.loop.stages import tool_calls
from harness_lib.loop.tools import bash, builtin, files, skills

_WORD = re.compile(r"/[A-Za-z][\w.:-]*")
_MENTION = re.compile(r"""(?<!\S)@(?:"([^"\n]+)"|(\S+))""")
_BEHIND = ".,;:!?)]}'"
_MOST_FILES = 20
_MOST_LINES = 2000
# The person waits for their own command as long as they like.
_SECONDS = 7 * 24 * 3600


def unknown(runtime: Runtime, text: str, known: Collection[str]) -> str:
    """Return why the first word of `text` names nothing, though it has a slash before it; "" otherwise.

    `known` are names beside those of skills. A path is no such word, and Claude Code has names of its own.
    """
    word = text.split(maxsplit=1)[0] if text.split() else ""
    names = {*known, *(f"/{name}" for name in skills.every(runtime))}
    if not _WORD.fullmatch(word) or word in names or runtime.provider == "claude" or Path(word).exists():
        return ""
    close = difflib.get_close_matches(word, sorted(names), 1)
    return f"There is no {word}.{f' Did you mean {close[0]}?' if close else ''}"


def with_files(runtime: Runtime, text: str) -> str:
    """Return `text` with what each @FILE in it holds; a word that names no file stays as it is."""
    parts = [text]
    for name, path in dict(_mentioned(runtime, text)).items():
        result = files.READ_FILE.execute(runtime, {"path": name, "limit": _MOST_LINES})
        if path.is_dir() and not trust.is_secret(path):
            result = Result(builtin.clipped(runtime, "\n".join(disk.visible_names(str(path)))))
        if result.error:
            runtime.notice(f"@{name} is not attached: {result.text.removeprefix('error: ')}")
        else:
            runtime.notice(f"attached: {name}")
            parts.append(f'<file path="{name}">\n{result.text}\n</file>')
    return "\n\n".join(parts)


def _mentioned(runtime: Runtime, text: str) -> Iterator[tuple[str, Path]]:
    for match in list(_MENTION.finditer(text))[:_MOST_FILES]:
        for name in (match[1],) if match[1] else (match[2], match[2].rstrip(_BEHIND)):
            # Not by pathlib: for a user that nobody knows, or a name that is too long, it raises an error.
            path = runtime.work_directory / os.path.expanduser(name)  # noqa: PTH111
            if name and os.path.exists(path):  # noqa: PTH110
                yield name, path
                break


def run_command(runtime: Runtime, command: str) -> None:
    """Run `command` for the person, and tell it with its output to the model before the next message."""
    assert runtime.session is not None
    tool_input, interrupted = {"command": command, "timeout": _SECONDS}, None
    runtime.stream.emit("tool_run", id="", name="bash", input=tool_input)
    try:
        result = bash.TOOL.execute(runtime, tool_input)
    except Interrupted as error:
        interrupted, result = error, Result(f"{error.printed}\n[{history.INTERRUPTED}]".lstrip(), error=True)
    with processes.uninterrupted():
        tool_calls.show(runtime, "bash", {"command": command}, result)
        runtime.session.append("user", {}, f"I ran this command:\n\n$ {command}\n{result.text}".rstrip())
    if interrupted is not None:
        raise interrupted
