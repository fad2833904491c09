"""Our entries in a host's TOML file (Kimi). Pure: text in, text out.

They are a block of tables at the end of the file, where nobody else's have to move for them, or the end
of the array in a file that has its hooks as one.
Documented, not measured: Kimi knows `event`, `matcher`, `command`, `timeout`; any other key breaks its file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness_lib.errors import ConfigError
from harness_lib.hookinstall import entries
from harness_lib.hookinstall.entries import Entry

if TYPE_CHECKING:
    from tomlkit import TOMLDocument
    from tomlkit.items import Array

BEGIN = "# Made by `harness hooks install`; `harness hooks uninstall` takes it back."
END = "# End of what harness made."

_LINES = (
    re.escape(BEGIN),
    r'(?:\[\[hooks\]\]\r?\nevent = "\w+"\r?\ncommand = (".*")\r?\ntimeout = \d+\r?\n)+' + re.escape(END),
    "",
)
_BLOCK = re.compile(r"(?:\r?\n)?" + r"\r?\n".join(_LINES))


def commands(text: str) -> list[str]:
    """Return the command of every hook in `text`, ours and others'. Raises ConfigError: invalid TOML."""
    hooks = _parsed(text).get("hooks")
    tables = hooks if isinstance(hooks, list) else []
    values = (table.get("command") for table in tables if isinstance(table, dict))
    return [str(command) for command in values if isinstance(command, str)]


def install(text: str, by_event: Mapping[str, Entry]) -> str:
    """Return `text` with our entries. Raises ConfigError: invalid TOML, or `hooks` is not a list."""
    from tomlkit.items import AoT, Array  # noqa: PLC0415 (see `_parsed`)

    bare = uninstall(text)
    document = _parsed(bare)
    hooks = document.get("hooks")
    if isinstance(hooks, Array):
        return _extended(document, hooks, by_event)
    if hooks is not None and not isinstance(hooks, AoT):
        raise ConfigError("hooks is no list here, so nothing can be added to it.")
    newline = "\r\n" if "\r\n" in bare else "\n"
    lines = [BEGIN]
    for event, entry in by_event.items():
        quoted = json.dumps(entry["command"], ensure_ascii=False)
        lines += ["[[hooks]]", f'event = "{event}"', f"command = {quoted}", f"timeout = {entry['timeout']}"]
    block = newline.join([*lines, END, ""])
    gap = "" if not bare else newline if bare.endswith("\n") else 2 * newline
    return bare + gap + block


def uninstall(text: str) -> str:
    """Return `text` without our entries; a block that was edited is left. Raises ConfigError."""
    block = _BLOCK.search(text)
    if block is not None and entries.script_of(_string(block[1])) is not None:
        text = text[: block.start()] + text[block.end() :]
    return _reduced(text)


def _extended(document: TOMLDocument, hooks: Array, by_event: Mapping[str, Entry]) -> str:
    import tomlkit  # noqa: PLC0415 (see `_parsed`)

    for event, entry in by_event.items():
        table = tomlkit.inline_table()
        table.update({"event": event, "command": entry["command"], "timeout": entry["timeout"]})
        hooks.append(table)
    return tomlkit.dumps(document)


def _reduced(text: str) -> str:
    """Return `text` without those elements of an array of hooks that belong to harness."""
    import tomlkit  # noqa: PLC0415 (see `_parsed`)
    from tomlkit.items import Array  # noqa: PLC0415

    document = _parsed(text)
    hooks = document.get("hooks")
    if not isinstance(hooks, Array):
        return text
    ours = [
        index
        for index, table in enumerate(hooks)
        if isinstance(table, dict) and entries.script_of(table.get("command")) is not None
    ]
    for index in reversed(ours):
        del hooks[index]
    return tomlkit.dumps(document) if ours else text


def _parsed(text: str) -> TOMLDocument:
    """Parse the document. Raises ConfigError: invalid TOML."""
    # Imported only for a host with such a file: every `harness status` asks which hooks are on.
    import tomlkit  # noqa: PLC0415
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise ConfigError(f"this is not TOML: {error}.") from error


def _string(quoted: str) -> str:
    try:
        return str(json.loads(quoted))
    except ValueError:
        return quoted
