"""The user of `hs`: what they are shown, what they type (/NAME, @FILE, !COMMAND), and what they are asked.

Names, answers and errors come from models, hosts and repositories; none of them may move a cursor. A bug of
ours is one line for the user, and a traceback in a file that can be sent to us.
"""

from __future__ import annotations

import os
import re
import sys
import termios
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from harness_lib.errors import HarnessError
from harness_lib.loop import context, disk, permissions, processes, tool_calls, trust
from harness_lib.loop.piped import Json, dumps
from harness_lib.loop.plugins import Result
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.tools import builtin, files, skills
from harness_lib.loop.tools.asking import Asker, Question, Said, always_about, rule_for
from harness_lib.text import closest, harmless, sentence

_WORD = r"/[A-Za-z][\w.:-]*"
_MENTION = r"""(?<!\S)@(?:"([^"\n]+)"|(\S+))"""
_BEHIND = ".,;:!?)]}'"
_MOST_LINES = 2000
# The user waits for their own command as long as they like.
_SECONDS = 7 * 24 * 3600
_SHOWN = 2000
_COLOURS = {"+": "green", "-": "red", "@": "cyan", " ": ""}
_CODES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "cyan": 36}
# A line and the name of its colour.
Line = tuple[str, str]
_TERMINAL = Path("/dev/tty")


def harmless_lines(text: object) -> str:
    """Return `text` with its line breaks and tabs, and nothing else that moves a cursor."""
    return harmless(str(text), keep="\n\t")


def tell(event: Json) -> None:
    """Print `event` for another program, as a line of JSON."""
    sys.stdout.write(f"{dumps(event)}\n")
    sys.stdout.flush()


def show(text: object = "", end: str = "\n") -> None:
    """Print `text` on standard output."""
    output = f"{text}{end}"
    sys.stdout.write(harmless_lines(output) if sys.stdout.isatty() else output)


def complain(text: object) -> None:
    """Print `text` on standard error; continue if it cannot be written."""
    with suppress(OSError):
        sys.stderr.write(f"{harmless_lines(text)}\n")


def one_line(error: HarnessError) -> str:
    """Return the message and the hint of `error` in one line."""
    return f"{sentence(error.message)} {error.hint}" if error.hint else error.message


def bug_line(error: BaseException) -> str:
    """Return the one line that says what went wrong."""
    words = " ".join(str(error).split())
    return f"This is a bug in hs: {type(error).__name__}{f': {words}' if words else ''}."


def keep_bug(error: BaseException, environ: Mapping[str, str]) -> str:
    """Write the traceback of `error` into the home of hs; say where it is."""
    import traceback  # noqa: PLC0415 (rarely needed)

    report = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    home = Path(environ.get("HARNESS_HOME") or Path(environ.get("HOME") or "~", ".harness").expanduser())
    path = home / f"bug-{os.getpid()}.txt"
    try:
        disk.write(path, report.encode("utf-8", "backslashreplace"))
    except OSError:
        return f"Please report it with these lines:\n{report.rstrip()}"
    return f"Please report it with {path}."


def unknown(provider: str, text: str, names: Collection[str]) -> str:
    """Return why the first word of `text`, with a slash before it, is not in `names`; "" otherwise.

    A path is no such word, and Claude Code has names of its own.
    """
    word = text.split(maxsplit=1)[0] if text.split() else ""
    if not re.fullmatch(_WORD, word) or word in names or provider == "claude" or Path(word).exists():
        return ""
    close = closest(word, names)
    return f"There is no {word}.{f' Did you mean {close}?' if close else ''}"


def skill_names(runtime: Runtime) -> set[str]:
    """Return the names of the skills as they are typed."""
    return {f"/{name}" for name in skills.every(runtime)}


def with_files(runtime: Runtime, text: str) -> str:
    """Return `text` with what each @FILE in it holds; a word that names no file stays as it is."""
    if "@" not in text:
        return text
    parts = [text]
    for name, path in dict(_mentioned(runtime, text)).items():
        call: Json = {"name": "read_file", "input": {"path": name, "limit": _MOST_LINES}}
        try:
            denied = permissions.decide(runtime, call).decision == "deny"
        except permissions.RulesError:
            denied = True
        if denied:
            result = Result("a rule denies it", error=True)
        elif path.is_dir() and not trust.is_secret(path):
            result = Result(builtin.clipped(runtime, "\n".join(disk.visible_names(str(path)))))
        else:
            result = files.READ_FILE.execute(runtime, call["input"])
        if result.error:
            runtime.notice(f"@{name} is not attached: {result.text.removeprefix('error: ')}")
        else:
            runtime.notice(f"attached: {name}")
            parts.append(f'<file path="{name}">\n{result.text}\n</file>')
    return "\n\n".join(parts)


def _mentioned(runtime: Runtime, text: str) -> Iterator[tuple[str, Path]]:
    for match in list(re.finditer(_MENTION, text))[:20]:
        for name in (match[1],) if match[1] else (match[2], match[2].rstrip(_BEHIND)):
            path = runtime.place(name)
            # `Path.exists` raises an error for a name that is too long.
            if name and os.path.exists(path):  # noqa: PTH110
                yield name, path
                break


def run_command(runtime: Runtime, command: str) -> None:
    """Run `command` for the user, and tell it with its output to the model before the next message."""
    tool_input, interrupted = {"command": command, "timeout": _SECONDS}, None
    runtime.stream.emit("tool_run", id="", name="bash", input=tool_input)
    try:
        result = builtin.TOOL.execute(runtime, tool_input)
    except processes.Interrupted as error:
        interrupted, result = error, Result(f"{error.printed}\n[{context.INTERRUPTED}]".lstrip(), error=True)
    with processes.uninterrupted():
        tool_calls.show(runtime, "bash", {"command": command}, result)
        runtime.session.append("user", {}, f"I ran this command:\n\n$ {command}\n{result.text}".rstrip())
    if interrupted:
        raise interrupted


def _ask(question: Question) -> Said:
    """Ask at the terminal and return the answer; the end of the input means no."""
    try:
        with _TERMINAL.open("r", encoding="utf-8", errors="replace") as terminal:
            # Keys typed before the question was shown are no answer.
            termios.tcflush(terminal, termios.TCIFLUSH)
            sys.stderr.write(f"{_coloured(question_lines(question))}\n{choices(question)}")
            sys.stderr.flush()
            answer = terminal.readline()
    except (OSError, termios.error):
        return Said(allowed=False, reason="the terminal is gone")
    return understood(answer, question)


def asker() -> Asker | None:
    """Return the function that asks the user; None without a terminal."""
    is_interactive = sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
    return _ask if is_interactive else None


def question_lines(question: Question) -> list[Line]:
    """Return the call for the user to look at, an edit as its difference."""
    who = f" (subagent {harmless(question.who)})" if question.who else ""
    head = f"hs: may {harmless(question.name)} run{who}? {harmless(question.reason)}".rstrip()
    if question.difference:
        return [("bold", head), *difference(question.difference)]
    lines = [("bold", head)]
    for key, value in question.input.items():
        text = str(value)
        cut = f"{text[:_SHOWN]}\n... ({len(text) - _SHOWN} more characters)" if len(text) > _SHOWN else text
        lines += [("", f"  {harmless(key)}: {harmless(line)}") for line in cut.splitlines() or [""]]
    return lines


def difference(text: str) -> list[Line]:
    """Return the lines of a unified difference in their colours; nothing in them moves the cursor."""
    # Where each line ends so, none of it is of interest.
    lines = [harmless(line.removesuffix("\r"), keep="\t") for line in text.split("\n")]
    return [(_COLOURS.get(line[:1], "dim"), f"  {line}") for line in lines]


def _coloured(lines: list[Line]) -> str:
    """Return `lines` for a terminal; without colours where NO_COLOR says so."""
    if os.environ.get("NO_COLOR"):
        return "\n".join(text for _, text in lines)
    return "\n".join(f"\x1b[{_CODES[style]}m{text}\x1b[0m" if style else text for style, text in lines)


def choices(question: Question) -> str:
    """Return the line with the possible answers."""
    subject = harmless(always_about(question))
    always = f", a = always ({subject})" if subject else ""
    rule = harmless(rule_for(question))
    save = f", s = save {rule}" if rule else ""
    return f"  y = once{always}{save}, n = no, or say why not: "


def understood(answer: str, question: Question) -> Said:
    """Return the meaning of `answer`; only a clear yes allows the call."""
    words = answer.strip()
    if words.lower() in {"y", "yes"}:
        return Said(allowed=True)
    if words.lower() in {"a", "always"} and always_about(question):
        return Said(allowed=True, always=True)
    if words.lower() in {"s", "save"} and rule_for(question):
        return Said(allowed=True, always=True, kept=True)
    if words.lower() in {"", "n", "no", "a", "always", "s", "save"}:
        return Said(allowed=False, reason="the user said no")
    return Said(allowed=False, reason=f"the user said no: {words}")
