"""Look whether there is a list with a marker, as cheaply as can be; only then is the hook loaded.

Until it is known that a marker stands, only `os` and plain strings are used.
Here is the outermost counter of the hooks: a bug of ours never holds an agent and never shows a traceback.
Source: docs/design.md, "The Stop hook", the first and the last row of its table.
"""

from __future__ import annotations

import os
import sys

from harness_lib.system.place import data_home, find_root

TYPE_CHECKING = False  # importing it from `typing` costs more than all of this
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LONGEST = 64 * 1024 * 1024


def answer(event: str, argv: Sequence[str]) -> int:
    """Answer `event` of the host that `argv` may name; return the exit code of the hook."""
    root = None
    _open_closed()
    try:
        data = _read()
        root = _switched_on(os.environ, data, event)
        if root is None:
            return 0
        if sys.dont_write_bytecode:
            # Harness is in use here: the next hook shall start fast.
            data_home.make(data_home.directory(os.environ))
            data_home.use_byte_code(os.environ)
        from harness_lib.hookio import handler  # noqa: PLC0415 (nobody home: not needed)

        return handler.run(event, argv, data, root, os.environ)
    except OSError as error:
        # A block that cannot be counted would be one of endlessly many.
        return _let_go(f"harness: its {event} hook holds nobody, as the system said: {error}\n")
    except Exception:  # noqa: BLE001 - the outermost counter of the hooks
        from harness_lib.hookio import bug  # noqa: PLC0415 (rarely needed)

        return _let_go(bug.report(event, root))


def _open_closed() -> None:
    if None in (sys.stdin, sys.stdout, sys.stderr):
        from harness_lib.system.files import standard_streams  # noqa: PLC0415 (hosts rarely close one)

        standard_streams.open_closed()


def _read() -> bytes:
    """Return what the host sends, at most LONGEST bytes; b"" if a person has typed the hook's name."""
    if sys.stdin is None or sys.stdin.isatty():
        return b""
    # Some hosts hand over an end that never waits, which looks empty until they have sent something.
    os.set_blocking(0, True)
    return sys.stdin.buffer.read(LONGEST)


def _switched_on(env: Mapping[str, str], data: bytes, event: str) -> str | None:
    """Return the state root if there is one whose marker stands; the end of an agent is noted without it."""
    if find_root.switched_off(env):
        return None
    data_home.use_byte_code(env)
    root = find_root.pinned(env) or find_root.search(env, _cwd(env, data))
    if not root or not (event == "SessionEnd" or os.path.exists(os.path.join(root, find_root.MARKER))):
        return None
    # Verbs say what is wrong there; a hook would have to write where the link leads.
    return None if find_root.linked(root) else root


def _cwd(env: Mapping[str, str], data: bytes) -> str:
    """Return the `cwd` of the payload if that is a directory, else where the host has started us.

    Nearly always they are the same, so it is only looked for in the bytes: the key in its quotes cannot stand
    inside of a text, where each quote has a backslash.
    """
    _, _, rest = data.partition(b'"cwd"')
    value = rest.lstrip(b" \t\r\n:")[: 16 * 1024]
    if value.startswith(b'"'):
        text = value[1:].partition(b'"')[0]
        named = _unescaped(value) if b"\\" in text else os.fsdecode(text)
        if os.path.isdir(named):
            return named
    named = env.get("HARNESS_CWD", "")
    if os.path.isdir(named):
        return named
    try:
        return os.getcwd()
    except FileNotFoundError:
        return os.sep


def _unescaped(value: bytes) -> str:
    """Return the JSON string that `value` begins with; "" if it is none."""
    import json  # noqa: PLC0415 (a path with a quote or another alphabet in it is rare)

    try:
        text, _ = json.JSONDecoder().raw_decode(value.decode("utf-8", "replace"))
    except ValueError:
        return ""
    return str(text)


def _let_go(line: str) -> int:
    """Say `line` on stderr, be anybody there to hear it or not; return the exit code that holds nobody."""
    from contextlib import suppress  # noqa: PLC0415 (rarely needed)

    from harness_lib.system.files import standard_streams  # noqa: PLC0415

    with suppress(OSError):
        sys.stderr.write(line)
    standard_streams.drop_unwritten()
    return 0
