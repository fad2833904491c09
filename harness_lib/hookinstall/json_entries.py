"""Our entries in a host's JSON file: found, added, removed. Pure: text in, text out.

The file is read and written by `json`, in its own indentation. A text that this would not write again as it
means (comments, a name twice) is only read: the user gets the lines to add.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterator, Mapping
from typing import Any

from harness_lib.errors import ConfigError
from harness_lib.hookinstall.entries import Entry, script_of

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
