"""What a client may set and call in a session: model, approval, and skills as slash commands."""

from __future__ import annotations

from html import unescape

from harness_lib.errors import ConfigError, UsageError
from harness_lib.hs.setup import choose_model
from harness_lib.loop import approval
from harness_lib.loop.piped import Json
from harness_lib.loop.provider_files import models
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions import accounts
from harness_lib.loop.tools import skills

_APPROVALS = {
    "ask": "Ask before a command or an edit",
    "auto": "Run all tools without asking",
    "read-only": "Run only tools that change nothing",
}


def config(runtime: Runtime) -> list[Json]:
    """Return the settings, each with its value and what else it may be."""
    current = f"{runtime.provider}/{runtime.model}"
    known = dict.fromkeys([current, *map(str, choose_model.ready(runtime))])
    return [
        {"id": "model", "name": "Model", "value": current, "options": {name: name for name in known}},
        {"id": "approval", "name": "Approval", "value": _approval(runtime), "options": _APPROVALS},
    ]


def choose(runtime: Runtime, name: str, value: str) -> None:
    """Set `name` to `value`. Raises UsageError."""
    setting = next((each for each in config(runtime) if each["id"] == name), None)
    if setting is None or value not in setting["options"]:
        raise UsageError(f"{name} cannot be {value}.")
    if name == "approval":
        runtime.env["HARNESS_APPROVE"] = value
        return
    choose_model.choose(runtime, value)


def _approval(runtime: Runtime) -> str:
    try:
        return approval.mode(runtime)
    except approval.UnknownModeError as error:
        raise ConfigError(f"{error}.", "It stands in HARNESS_APPROVE or in a settings.conf.") from error


def commands(runtime: Runtime) -> list[Json]:
    """Return the slash commands: the skills."""
    return [
        {"name": skill.name, "description": unescape(skill.description)}
        for skill in skills.every(runtime).values()
    ]


def expand(runtime: Runtime, text: str) -> str:
    """Return `text` as the model is told it: a slash command is the skill of its name."""
    name, _, rest = text.removeprefix("/").partition(" ")
    if not text.startswith("/") or name.strip() not in skills.every(runtime):
        return text
    return f"Load the skill {name.strip()} by the tool `skill` and follow it.\n\n{rest}".rstrip()


def usage(runtime: Runtime) -> Json:
    """Return what the context holds and what the session has cost."""
    session = runtime.session
    messages = session.messages() if session else []
    answers = [message for message in messages if message.role == "assistant"]
    last = accounts.total(answers[-1:])
    return {
        "used": last.tokens_in + last.tokens_out,
        "size": models.of(runtime).context,
        "cost": accounts.total(messages).cost,
    }
