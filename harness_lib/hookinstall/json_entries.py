"""Our entries in a host's file, JSON or TOML: found, added, removed. Pure: text in, text out.

JSON is read and written by `json`, in its own indentation. A text that this would not write again as it
means (comments, a name twice) is only read: the user gets the lines to add.
In TOML they are a block of tables at the end of the file, where nobody else's have to move for them, or the
end of the array in a file that has its hooks as one. Documented, not measured: Kimi knows `event`, `matcher`,
`command`, `timeout`; any other key breaks its file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from harness_lib.errors import ConfigError
from harness_lib.hookinstall import entries
from harness_lib.hookinstall.entries import Entry, script_of

if TYPE_CHECKING:
    from tomlkit import TOMLDocument
    from tomlkit.items import Array

Document = dict[str, Any]

_STRING = r'"(?:[^"\\]|\\.)*"'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])")


def parsed(text: str) -> Document:
    """Parse the settings in `text`, without comments and trailing commas.

    Raises ConfigError: with the line.
    """
    if not text.strip():
        return {}
    bare = _COMMA.sub(_blank, _COMMENT.sub(_blank, text))
    try:
        document = json.loads(bare)
    except json.JSONDecodeError as error:
        raise ConfigError(f"line {error.lineno}: this is not JSON ({error.msg})") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"line 1: this is not JSON that can be read ({error})") from error
    if not isinstance(document, dict):
        raise ConfigError("line 1: the whole is no object")
    if not isinstance(document.get("hooks", {}), dict):
        line = text.count("\n", 0, text.find('"hooks"')) + 1
        raise ConfigError(f"line {line}: hooks is no object")
    return document


def _blank(match: re.Match[str]) -> str:
    """Return blanks in place of a comment, with the same line breaks."""
    return match[0] if match[0].startswith('"') else re.sub(r"[^\n]", " ", match[0])


def loss(text: str) -> str:
    """Return what `json` would lose if it wrote `text` back; "" if nothing."""
    twice: list[str] = []

    def unique(pairs: list[tuple[str, object]]) -> Document:
        names = [name for name, _ in pairs]
        twice.extend(name for name in names if names.count(name) > 1)
        return dict(pairs)

    try:
        document = json.loads(text if text.strip() else "{}", object_pairs_hook=unique)
        rendered(document, text).encode()
    except json.JSONDecodeError:
        return "comments or trailing commas"
    except ValueError:
        return "a number or a character that JSON has no other form for"
    return f"the name {twice[0]!r} twice" if twice else ""


def rendered(document: Document, text: str) -> str:
    """Return `document` in the indentation, line breaks and alphabet of `text`."""
    body = text.strip()
    if not body:
        text, body = "{\n}\n", "{\n}"
    indent = re.search(r'\n([ \t]+)"', body)
    many = "\n" in body or body == "{}"
    separators = (",", ": ") if many else (", ", ": ") if '": ' in body else (",", ":")
    new = json.dumps(
        document,
        indent=(indent[1] if indent else "  ") if many else None,
        separators=separators,
        ensure_ascii=body.isascii(),
        allow_nan=False,
    )
    start = text.find(body[0])
    whole = f"{text[:start]}{new}{text[start + len(body) :]}"
    return whole.replace("\n", "\r\n").replace("\r\r\n", "\r\n") if "\r\n" in text else whole


def handlers(document: Document) -> Iterator[tuple[str, object]]:
    """Yield (event, command) of every handler, ours and others'."""
    for event, _, group, place in _places(document):
        handler = group[place]
        yield event, handler.get("command", handler.get("bash")) if isinstance(handler, dict) else None


def _places(document: Document) -> Iterator[tuple[str, list[Any], list[Any], int]]:
    """Yield (event, its list, the list that holds a handler, the place there) of every handler."""
    for event, listed in document.get("hooks", {}).items():
        # Not all members are events (Gemini's "disabled" is a switch).
        for number, entry in enumerate(listed if isinstance(listed, list) else ()):
            inner = entry.get("hooks") if isinstance(entry, dict) else None
            if isinstance(inner, list):
                for place in range(len(inner)):
                    yield event, listed, inner, place
            else:
                yield event, listed, listed, number


def _is_ours(handler: object) -> bool:
    return isinstance(handler, dict) and script_of(handler.get("command", handler.get("bash"))) is not None


def install(document: Document, by_event: Mapping[str, Entry], root: Mapping[str, object]) -> None:
    """Give `document` one entry of harness for each event of `by_event`, and no other.

    An existing entry of harness is changed in place: Codex remembers trust by the place of a hook, of
    others' hooks too. `root` are members that the host wants to see at the top.
    """
    uninstall(document, keep=by_event)
    for key, value in root.items():
        document.setdefault(key, value)
    hooks = document.setdefault("hooks", {})
    standing = {
        event: (listed, group, place)
        for event, listed, group, place in _places(document)
        if _is_ours(group[place])
    }
    for event, entry in by_event.items():
        if event not in standing:
            hooks.setdefault(event, []).append(entry)
            continue
        listed, group, place = standing[event]
        if group is listed:
            group[place] = entry
        elif len(group) == 1:
            listed[next(n for n, each in enumerate(listed) if each.get("hooks") is group)] = entry
        else:
            inner = entry["hooks"]
            assert isinstance(inner, list)
            group[place] = inner[0]


def uninstall(document: Document, keep: Container[str] = ()) -> None:
    """Remove our entries from `document`, except the first one of each event in `keep`.

    Remove what is empty after that, too: an entry without handlers counts as empty even if it has a matcher.
    """
    hooks = document.get("hooks", {})
    for event in list(hooks):
        if not isinstance(hooks[event], list):
            continue
        left = [event in keep]
        before = len(hooks[event])
        hooks[event][:] = [each for each in hooks[event] if _stays(each, left)]
        if len(hooks[event]) < before and not hooks[event]:
            del hooks[event]
            if not hooks:
                del document["hooks"]


def _stays(entry: Any, left: list[bool]) -> bool:
    """Remove our handlers from `entry` (while `left`, not the first one); return whether `entry` stays."""
    if not isinstance(entry, dict) or not isinstance(entry.get("hooks"), list):
        return not _is_ours(entry) or _first(left)
    before = len(entry["hooks"])
    entry["hooks"][:] = [each for each in entry["hooks"] if not _is_ours(each) or _first(left)]
    return bool(entry["hooks"]) or not before


def _first(left: list[bool]) -> bool:
    first, left[0] = left[0], False
    return first


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


def install_toml(text: str, by_event: Mapping[str, Entry]) -> str:
    """Return `text` with our entries. Raises ConfigError: invalid TOML, or `hooks` is not a list."""
    from tomlkit.items import AoT, Array  # noqa: PLC0415 (see `_parsed`)

    bare = uninstall_toml(text)
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


def uninstall_toml(text: str) -> str:
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
