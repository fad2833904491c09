"""Our entries in a host's TOML file (Kimi), as a block at its end. Pure: text in, text out.

Documented, not measured: Kimi knows `event`, `matcher`, `command`, `timeout`; any other key breaks its file.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping

from harness_lib.errors import ConfigError
from harness_lib.ops import hook_entries
from harness_lib.ops.hook_entries import Entry

BEGIN = "# Made by `harness hooks install`; `harness hooks uninstall` takes it back."
END = "# End of what harness made."

_LINES = (
    re.escape(BEGIN),
    r'(?:\[\[hooks\]\]\r?\nevent = "\w+"\r?\ncommand = (".*")\r?\ntimeout = \d+\r?\n)+' + re.escape(END),
    "",
)
_BLOCK = re.compile(r"(?:\r?\n)?" + r"\r?\n".join(_LINES))
_OTHERWISE = re.compile(r"""^[ \t]*(?:\[[ \t]*)?["']?hooks["']?[ \t]*[=.\]]""", re.MULTILINE)
_COMMAND = re.compile(r"""^[ \t]*command[ \t]*=[ \t]*(".*"|'.*')[ \t]*(?:#.*)?\r?$""", re.MULTILINE)


def commands(text: str) -> list[str]:
    """Return every command in `text` that stands on one line, everybody's."""
    return [_string(quoted) for quoted in _COMMAND.findall(text)]


def install(text: str, wanted: Mapping[str, Entry]) -> str:
    """Return `text` with our block at its end. Raises ConfigError: it has hooks in another form."""
    check(text)
    bare = uninstall(text)
    found = _OTHERWISE.search(bare)
    if found:
        line = bare.count("\n", 0, found.start()) + 1
        raise ConfigError(
            f"line {line}: hooks are written here in a form to which nothing can be added.",
        )
    newline = "\r\n" if "\r\n" in bare else "\n"
    lines = [BEGIN]
    for event, entry in wanted.items():
        quoted = json.dumps(entry["command"], ensure_ascii=False)
        lines += ["[[hooks]]", f'event = "{event}"', f"command = {quoted}", f"timeout = {entry['timeout']}"]
    block = newline.join([*lines, END, ""])
    gap = "" if not bare else newline if bare.endswith("\n") else 2 * newline
    changed = bare + gap + block
    check(changed)
    return changed


def uninstall(text: str) -> str:
    """Return `text` without our block; one that somebody has changed is left."""
    found = _BLOCK.search(text)
    if found is None or hook_entries.script_of(_string(found[1])) is None:
        return text
    return text[: found.start()] + text[found.end() :]


def check(text: str) -> None:
    """Raise ConfigError if `text` is no TOML; Python 3.10 cannot tell."""
    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415 (not in 3.10)

        try:
            tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"this is not TOML: {error}.") from error


def _string(quoted: str) -> str:
    if quoted.startswith("'"):
        return quoted[1:-1]
    try:
        return str(json.loads(quoted))
    except ValueError:
        return quoted
