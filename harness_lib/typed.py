"""Commands as somebody will type them: every `next`, hint, brief and reason of a hook gets them from here.

An id or a path may hold what a shell understands, and agents type what they are shown.
So nobody writes a name into a command by hand: the words go in apart, and come out quoted for `sh`.
The other way round, `simple_commands` reads what somebody has typed.
Standard library only, and `shlex` only where it is needed: hooks speak through this, too.
"""

from __future__ import annotations

# Beyond it a name of digits calls no task: Python refuses to read thousands of them.
LONGEST_NUMBER = 9
_PLAIN = dict.fromkeys(map(ord, "_@%+=:,./-"), "a")
_OPERATORS = "();<>|&\n"
UNCLOSED = "'"


def harness(*words: object, rest: str = "", program: str = "harness") -> str:
    """Return a command of harness; `program` is the path of its launcher, where it needs one.

    `rest` is for what the reader fills in, and stands as it is: "--validate 'COMMAND'".
    """
    return _line((program, *words), rest)


def give_check(task_id: str) -> str:
    """Return the command with which a task gets another check."""
    return harness("edit", task_id, rest="--validate 'COMMAND'")


def git(*words: object, rest: str = "") -> str:
    """Return a command of git; `rest` as in `harness`."""
    return _line(("git", *words), rest)


def change_to(directory: object) -> str:
    """Return the command that makes `directory` the current one."""
    return _line(("cd", directory), "")


def word(text: object) -> str:
    """Return `text` so that a shell takes it as one word, which is `text`."""
    plain = str(text)
    if plain.isascii() and plain.translate(_PLAIN).isalnum():
        return plain
    import shlex  # noqa: PLC0415 (its regular expressions take longer than most hooks)

    return shlex.quote(plain)


def _line(words: tuple[object, ...], rest: str) -> str:
    line = " ".join(map(word, words))
    return f"{line} {rest}" if rest else line


def simple_commands(text: str) -> list[tuple[list[str], str]]:
    """Return the words of each simple command in `text`, and the operator behind it.

    Behind the last one that is "", or UNCLOSED in an open quote, which the shell will report.
    """
    import shlex  # noqa: PLC0415 (as in `word`)

    lexer = shlex.shlex(text.replace("\\\n", " "), posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    found: list[tuple[list[str], str]] = []
    words: list[str] = []
    end = ""
    try:
        for each in lexer:
            if each and not each.strip(_OPERATORS):
                # A line may end behind an operator.
                found.append((words, each.strip("\n") or "\n"))
                words = []
            else:
                words.append(each)
    except ValueError:
        end = UNCLOSED
    return [*found, (words, end)]


def full_id(name: str) -> str:
    """Return `task-003` for `3` and `task-3`, and every other name of a task as it is."""
    digits = name.removeprefix("task-")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= LONGEST_NUMBER
    return f"task-{int(digits):03d}" if is_number else name
