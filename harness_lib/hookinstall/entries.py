"""Our entries in a host's file, JSON or TOML: made, found, added, removed.

The events, matchers and time limits come from `hooks/hooks.json`, which the plugins load: one source for all.
JSON is read and written by `json`, in its own indentation. A text that this would not write again as it
means (comments, a name twice) is only read: the user gets the lines to add.
In TOML they are a block of tables at the end of the file, where nobody else's have to move for them.
Documented, not measured: Kimi knows `event`, `matcher`, `command`, `timeout`; any other key breaks its file.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_lib.agents.adapter import Host
from harness_lib.errors import ConfigError, EnvSetupError, UsageError
from harness_lib.system.place import data_home

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

Entry = dict[str, object]

_HOME = Path(data_home.HOME)
_SCRIPT = re.compile(r"hooks/(harness-[a-z]+\.py)")
_NAMED = re.compile(
    r"\bharness-(stop|sessionstart|sessionend|teammateidle|subagentstart|subagentstop|pretooluse|posttooluse)"
    r"\.py\b"
)
# If the script is gone, the command prints nothing: in some hosts, exit code 2 would block the agent for
# ever. Hosts start hooks in the project, where a relative entry of the PATH would find the project's own
# python3.
_AWAY = '[ ! -f "$f" ] || { HARNESS_CWD=$PWD; export HARNESS_CWD; cd /; '
_FIND = "p=$(command -v python3)"
# For the hook whose failure refuses a tool call: a missing Python must not refuse it.
_ABLE = " || exit 0"
# pyenv's shim takes three times as long as the hook itself.
_RUN = (
    '; case $p in */shims/python3) r=${p%/shims/*}; [ ! -f "$r/version" ] || read -r v <"$r/version"; '
    'v=$r/versions/${PYENV_VERSION:-$v}/bin/python3; [ ! -x "$v" ] || p=$v ;; esac; '
    'exec "${p:-python3}" -I -S "$f"'
)
_END = "; }"
# In between, earlier versions looked for python3 in another way.
_SPELLING = re.compile(rf'f=(.+); \[ ! -f "\$f" \] \|\| {{ .* -I -S "\$f"(?: [a-z]+)?{_END}', re.DOTALL)


def folder() -> Path:
    """Return the directory of our hooks, beside the package in a checkout and in a skill folder.

    Raises EnvSetupError: an installed package has none, as hooks need the launcher beside them, too;
    UsageError: its path cannot stand in a host's file.
    """
    place = _HOME / "hooks"
    if not (place / "hooks.json").is_file():
        raise EnvSetupError(
            f"The hooks are no part of the Python package ({_HOME / 'harness_lib'}).",
            "Take them from the skill folder (npx skills add) or a checkout: bin/harness hooks install",
        )
    if not str(place).isprintable():
        raise UsageError(
            f"The path of the hooks has characters that no setting can hold: {place}", "Move it."
        )
    return place


def command(script: Path, host: Host, *, refuses: bool = False) -> str:
    """Return the shell command that runs `script`, and does nothing if the script is gone.

    A missing script would otherwise hold an agent for ever in Codex and Gemini.
    `refuses`: the host takes a failure of the hook as a refusal.
    """
    name = f" {host.name}" if host.is_named else ""
    able = _ABLE if refuses else ""
    return f"f={shlex.quote(str(script))}; {_AWAY}{_FIND}{able}{_RUN}{name}{_END}"


def script_of(text: object) -> Path | None:
    """Return the script that the command `text` calls if it is one of harness, else None."""
    match = _SPELLING.fullmatch(text) if isinstance(text, str) else None
    if not match:
        return None
    try:
        words = shlex.split(match[1])
    except ValueError:
        return None
    is_ours = (
        len(words) == 1 and _NAMED.fullmatch(Path(words[0]).name) and Path(words[0]).parent.name == "hooks"
    )
    return Path(words[0]) if is_ours else None


def is_other_harness(text: object) -> bool:
    """Return whether `text` runs a hook of harness, but was not written by `harness hooks install`."""
    return isinstance(text, str) and not script_of(text) and _NAMED.search(text) is not None


def by_event(host: Host) -> dict[str, Entry]:
    """Return the entries for the file of `host` by its names of the events."""
    place = folder()
    ours = json.loads((place / "hooks.json").read_text(encoding="utf-8"))["hooks"]
    entries: dict[str, Entry] = {}
    for event, theirs in host.events.items():
        for group in ours.get(event, ()):
            entries[theirs] = _entry(host, event, group, place)
    return entries


def _entry(host: Host, event: str, group: Mapping[str, object], place: Path) -> Entry:
    handlers = group["hooks"]
    assert isinstance(handlers, list)
    (handler,) = handlers
    script = _SCRIPT.search(handler["command"])
    assert script is not None
    seconds = int(handler["timeout"])
    own: Entry = {"type": "command"}
    kept = {key: handler[key] for key in host.kept if key in handler}
    own[host.command_key] = command(place / script[1], host, refuses="onFailure" in kept)
    own[host.timeout_key] = seconds * host.timeout_unit
    own |= host.extra.get(event, {})
    if host.form != "groups":
        return own
    own |= kept
    if host.has_names:
        own["name"] = script[1].removesuffix(".py")
    matcher = host.matchers[event] if event in host.matchers else group.get("matcher")
    return {"hooks": [own]} if matcher is None else {"matcher": matcher, "hooks": [own]}


# -- JSON


Document = dict[str, Any]

_STRING = r'"(?:[^"\\]|\\.)*"'
_COMMENT = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_COMMA = re.compile(rf"{_STRING}|,(?=\s*[}}\]])")


def parsed(text: str) -> Document:
    """Parse settings, which may have comments and trailing commas. Raises ConfigError with the line."""
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
        raise ConfigError("line 1: the file must hold one JSON object")
    if not isinstance(document.get("hooks", {}), dict):
        line = text.count("\n", 0, text.find('"hooks"')) + 1
        raise ConfigError(f"line {line}: hooks must be an object")
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
    Raises ConfigError: the value of an event is not a list.
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
        if not isinstance(hooks.get(event, []), list):
            raise ConfigError(f"hooks.{event} must be a list")
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
        # True once, for the one that is kept.
        spared = iter([event in keep])
        before = len(hooks[event])
        hooks[event][:] = [each for each in hooks[event] if _stays(each, spared)]
        if len(hooks[event]) < before and not hooks[event]:
            del hooks[event]
            if not hooks:
                del document["hooks"]


def _stays(entry: Any, spared: Iterator[bool]) -> bool:
    """Remove our handlers from `entry`, but for one that is `spared`; return whether `entry` stays."""
    if not isinstance(entry, dict) or not isinstance(entry.get("hooks"), list):
        return not _is_ours(entry) or next(spared, False)
    before = len(entry["hooks"])
    entry["hooks"][:] = [each for each in entry["hooks"] if not _is_ours(each) or next(spared, False)]
    return bool(entry["hooks"]) or not before


# -- TOML


BEGIN = "# Made by `harness hooks install`; `harness hooks uninstall` takes it back."
END = "# End of what harness made."

_LINES = (
    re.escape(BEGIN),
    r'(?:\[\[hooks\]\]\r?\nevent = "\w+"\r?\n(?:matcher = ".*"\r?\n)?'
    r'command = (".*")\r?\ntimeout = \d+\r?\n)+' + re.escape(END),
    "",
)
_BLOCK = re.compile(r"(?:\r?\n)?" + r"\r?\n".join(_LINES))


def toml_handlers(text: str) -> list[tuple[str, object]]:
    """Return (event, command) of every hook in `text`, ours and others'. Raises ConfigError: invalid TOML."""
    hooks = _parsed(text).get("hooks")
    tables = hooks if isinstance(hooks, list) else []
    return [(str(each.get("event")), each.get("command")) for each in tables if isinstance(each, dict)]


def install_toml(text: str, by_event: Mapping[str, Entry]) -> str:
    """Return `text` with our entries. Raises ConfigError: invalid TOML, or `hooks` is no list of tables."""
    from tomlkit.items import AoT  # noqa: PLC0415 (see `_parsed`)

    bare = uninstall_toml(text)
    hooks = _parsed(bare).get("hooks")
    if hooks is not None and not isinstance(hooks, AoT):
        raise ConfigError("hooks is not a list of [[hooks]] here, so nothing can be added to it.")
    newline = "\r\n" if "\r\n" in bare else "\n"
    lines = [BEGIN]
    for event, entry in by_event.items():
        values = {"event": event, **{key: entry.get(key) for key in ("matcher", "command", "timeout")}}
        lines.append("[[hooks]]")
        lines += [f"{key} = {json.dumps(values[key], ensure_ascii=False)}" for key in values if values[key]]
    block = newline.join([*lines, END, ""])
    gap = "" if not bare else newline if bare.endswith("\n") else 2 * newline
    return bare + gap + block


def uninstall_toml(text: str) -> str:
    """Return `text` without our entries; a block that was edited is left."""
    block = _BLOCK.search(text)
    # A command that is not written as JSON has been edited.
    with suppress(ValueError):
        if block and script_of(json.loads(block[1])):
            return text[: block.start()] + text[block.end() :]
    return text


def _parsed(text: str) -> TOMLDocument:
    """Parse the document. Raises ConfigError: invalid TOML."""
    # Imported only for a host with such a file: every `harness status` asks which hooks are on.
    import tomlkit  # noqa: PLC0415
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise ConfigError(f"this is not TOML: {error}.") from error
