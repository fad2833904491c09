"""Make the entries for our hooks in a host's file, and tell our own from others again.

The events, matchers and time limits come from `hooks/hooks.json`, which the plugins load: one source for all.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from harness_lib.agents.adapter import Host
from harness_lib.errors import EnvSetupError, UsageError
from harness_lib.system.place import data_home

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
# The command that earlier versions wrote, which starts the shim.
_FORMER_ABLE, _FORMER_RUN = "command -v python3 >/dev/null || exit 0; ", 'exec python3 -I -S "$f"'
_FORMS = (
    *(_AWAY + _FIND + able + _RUN for able in ("", _ABLE)),
    *(_AWAY.replace("{ ", "{ " + able) + _FORMER_RUN for able in ("", _FORMER_ABLE)),
)
_SPELLING = re.compile(rf"f=(.+); (?:{'|'.join(map(re.escape, _FORMS))})(?: [a-z]+)?{_END}", re.DOTALL)


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
    if match is None:
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
    return isinstance(text, str) and script_of(text) is None and _NAMED.search(text) is not None


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
    own: Entry = {} if host.form == "toml" else {"type": "command"}
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
