"""Answer an event as cheaply as possible: the rest of a hook is loaded only where harness is enabled.

Until an enabled list is found, only `os` and plain strings are used.
This is the outermost error handler of the hooks: a bug never holds an agent and never shows a traceback.
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
    if None in (sys.stdin, sys.stdout, sys.stderr):
        from harness_lib.system.processes import own_process  # noqa: PLC0415 (hosts rarely close one)

        own_process.open_closed_streams()
    try:
        data = _read()
        root = _switched_on(os.environ, data, event)
        if root is None:
            return 0
        if sys.dont_write_bytecode:
            # Harness is in use here, so the next hook should start fast.
            data_home.make(data_home.directory(os.environ))
            data_home.use_byte_code(os.environ)
        from harness_lib.hookio import handler  # noqa: PLC0415 (most events need none)

        return handler.run(event, argv, data, root, os.environ)
    except OSError as error:
        # A block that cannot be counted could be repeated for ever.
        return _let_go(f"harness: {event} hook disabled: {error}\n")
    except Exception:  # noqa: BLE001 - the outermost error handler of the hooks
        return _let_go(_bug(event, root))


def _read() -> bytes:
    """Return what the host sends, at most LONGEST bytes; b"" if a user has typed the hook's name."""
    if sys.stdin is None or sys.stdin.isatty():
        return b""
    # Some hosts pass a non-blocking pipe, which looks empty until they have written to it.
    os.set_blocking(0, True)
    return sys.stdin.buffer.read(LONGEST)


def _switched_on(env: Mapping[str, str], data: bytes, event: str) -> str | None:
    """Return the project directory if harness is enabled there; SessionEnd is noted without the flag."""
    if find_root.switched_off(env):
        return None
    data_home.use_byte_code(env)
    root = find_root.search(env, _cwd(env, data))
    if not root or not (event == "SessionEnd" or os.path.exists(os.path.join(root, find_root.ENABLE_FLAG))):
        return None
    # Verbs report a linked file; a hook would have to write where the link points.
    return None if find_root.linked(root) else root


def _cwd(env: Mapping[str, str], data: bytes) -> str:
    """Return the `cwd` of the payload if that is a directory, else the directory the host started us in.

    Only the bytes are searched, as decoding takes longer: the key in its quotes cannot occur inside a string,
    where each quote has a backslash.
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
    """Return the JSON string at the beginning of `value`; "" if there is none."""
    import json  # noqa: PLC0415 (few paths have a quote or another alphabet in them)

    try:
        text, _ = json.JSONDecoder().raw_decode(value.decode("utf-8", "replace"))
    except ValueError:
        return ""
    return str(text)


def _let_go(line: str) -> int:
    """Write `line` to stderr if possible and return the exit code that holds no agent."""
    from contextlib import suppress  # noqa: PLC0415 (rarely needed)

    from harness_lib.system.processes import own_process  # noqa: PLC0415

    with suppress(OSError):
        sys.stderr.write(line)
    own_process.drop_unwritten()
    return 0


def _bug(event: str, root: str | None) -> str:
    """Write the traceback of the current exception to a file; return the line that reports it."""
    import traceback  # noqa: PLC0415 (rarely needed)

    from harness_lib.system.place import own_files  # noqa: PLC0415

    text = traceback.format_exc()
    error = text.strip().splitlines()[-1]
    where = own_files.keep_bug(root, text) if root else None
    details = f"details in {where}" if where else "no file for the details could be written"
    return f"harness: {event} hook disabled by a bug in it: {error[:300]} ({details})\n"
