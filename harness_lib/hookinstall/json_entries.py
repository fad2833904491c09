"""Our entries in a host's JSON file: found, put in, taken out. Pure: text in, text out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, NoReturn

from harness_lib.errors import ConfigError
from harness_lib.hookinstall.entries import Entry, script_of
from harness_lib.system.files import json_edit
from harness_lib.system.files.json_edit import Node

EMPTY = "{}\n"

Step = tuple[str | int, ...]


class Handler(NamedTuple):
    """A handler in the file: `path` leads to it, `entry` to the element of the event's list that holds it.

    `alone`: it is all that this element is for.
    """

    event: str
    path: Step
    entry: Step
    alone: bool
    command: object


def handlers(text: str) -> list[Handler]:
    """Return every handler in `text`, everybody's. Raises MalformedError, ConfigError (no handlers)."""
    root = json_edit.parse(text)
    if root.kind != "object":
        _wrong(text, root, "object")
    hooks = _container(text, root, "hooks", "object")
    return [] if hooks is None else list(_handlers(text, hooks))


def _handlers(text: str, hooks: Node) -> Iterator[Handler]:
    for event in dict.fromkeys(item.key for item in hooks.items if item.key is not None):
        entries = _container(text, hooks, event, "array")
        for number, item in enumerate(entries.items if entries else ()):
            entry: Step = ("hooks", event, number)
            inner = item.node.get("hooks")
            if inner is None or inner.kind != "array":
                yield Handler(event, entry, entry, alone=True, command=_command(item.node))
                continue
            for place, handler in enumerate(inner.items):
                path = (*entry, "hooks", place)
                yield Handler(event, path, entry, len(inner.items) == 1, _command(handler.node))


def _command(handler: Node) -> object:
    node = handler.get("command") or handler.get("bash")
    return node.value if node else None


def _container(text: str, parent: Node, key: str, kind: Literal["object", "array"]) -> Node | None:
    node = parent.get(key)
    if node is None or node.kind == kind:
        return node
    if key == "hooks":
        _wrong(text, node, kind, key)
    # Other things than events stand among them (Gemini's "disabled", a switch).
    return None


def _wrong(text: str, node: Node, kind: str, key: str = "the whole") -> NoReturn:
    line = text.count("\n", 0, node.start) + 1
    raise ConfigError(f"line {line}: {key} is no {kind}")


def ours(text: str) -> list[Handler]:
    """Return our own handlers in `text`."""
    return [each for each in handlers(text) if script_of(each.command) is not None]


def install(text: str, by_event: Mapping[str, Entry], root: Mapping[str, object]) -> str:
    """Return `text` with one entry of ours for each event of `by_event`, and none for another.

    Entries of ours that stand there are changed in their place: Codex remembers trust by the place of a hook,
    other people's too. `root` are members that the host wants to see at the top.
    """
    if not text.strip():
        text = EMPTY
    text = _without(text, list(_superfluous(ours(text), by_event)))
    standing = {each.event: each for each in ours(text)}
    for key, value in root.items():
        text = text if _has(text, (key,)) else json_edit.add(text, (), value, key)
    for event, entry in by_event.items():
        text = _updated(text, standing[event], entry) if event in standing else _appended(text, event, entry)
    return text


def uninstall(text: str) -> str:
    """Return `text` without our entries, and without what is empty now because of that."""
    return _without(text, ours(text))


def keeps(before: str, after: str) -> bool:
    """Return whether everything that others have in `before` is in `after`, and in the same order."""
    before, after = (text if text.strip() else EMPTY for text in (before, after))
    old, new = json_edit.parse(before), json_edit.parse(after)
    members = (item for item in old.items if item.key != "hooks")
    same = all(_dump(new.get(item.key or "")) == _dump(old.get(item.key or "")) for item in members)
    return same and _foreign(before, old) == _foreign(after, new)


def _foreign(text: str, root: Node) -> list[tuple[str, str]]:
    others = (each for each in handlers(text) if script_of(each.command) is None)
    return [(each.event, _dump(json_edit.at(root, each.path))) for each in others]


def _dump(node: Node | None) -> str:
    return json.dumps(node.plain() if node else None)


def _superfluous(standing: list[Handler], by_event: Mapping[str, Entry]) -> Iterator[Handler]:
    seen: set[str] = set()
    for each in standing:
        if each.event not in by_event or each.event in seen:
            yield each
        seen.add(each.event)


def _without(text: str, gone: list[Handler]) -> str:
    # From the end, so that the places of the others stay true.
    for each in sorted(gone, key=lambda one: (one.event, one.path[2:]), reverse=True):
        path = each.path
        text = json_edit.remove(text, path)
        while len(path) > 1 and _is_hollow(text, path[:-1], each):
            path = path[:-1]
            text = json_edit.remove(text, path)
    return text


def _is_hollow(text: str, path: Step, gone: Handler) -> bool:
    """Return whether the removal of a handler has left nothing at `path`, not even a comment.

    An entry without its handlers is nothing, though its matcher is still there.
    """
    node = json_edit.at(json_edit.parse(text), path)
    if node is None:
        return False
    if path == gone.entry:
        return node.get("hooks") is None
    return not text[node.start + 1 : node.end - 1].strip()


def _has(text: str, path: Step) -> bool:
    return json_edit.at(json_edit.parse(text), path) is not None


def _updated(text: str, standing: Handler, entry: Entry) -> str:
    path = standing.entry if standing.alone else standing.path
    value: object = entry
    if path != standing.entry:
        handlers = entry["hooks"]
        assert isinstance(handlers, list)
        value = handlers[0]
    node = json_edit.at(json_edit.parse(text), path)
    if node is not None and node.plain() == value:
        return text
    return json_edit.replace(text, path, value)


def _appended(text: str, event: str, entry: Entry) -> str:
    if not _has(text, ("hooks",)):
        text = json_edit.add(text, (), {}, "hooks")
    if not _has(text, ("hooks", event)):
        return json_edit.add(text, ("hooks",), [entry], event)
    return json_edit.add(text, ("hooks", event), entry)
