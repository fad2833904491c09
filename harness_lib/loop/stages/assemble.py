"""The stages `start`, `assemble` and `error`: make a request, and show an error."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import cast

from harness_lib.loop import disk, processes, trust
from harness_lib.loop.mcp.servers import known, prepare
from harness_lib.loop.piped import HookError, Json
from harness_lib.loop.plugins import Tool
from harness_lib.loop.providers import hosted
from harness_lib.loop.runtime import Plugin, Runtime
from harness_lib.loop.sessions import context
from harness_lib.loop.tools import skills
from harness_lib.loop.wires.answer import adapter

# The names that all APIs accept; a host refuses every request in which one tool has another name.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_AGENTS_LIMIT = 32 * 1024
_PROMPT_LIMIT = 256 * 1024
_HEAD = (
    "These skills hold instructions for particular work. "
    "When a task matches a description, load the skill by the tool `skill` before you begin."
)


def start(runtime: Runtime, payload: Json) -> Json:  # noqa: ARG001
    """Go on to `assemble`."""
    return {**payload, "next_state": "assemble"}


def display(runtime: Runtime, payload: Json) -> Json:
    """Turn the error into the output of the run."""
    error = payload.get("error")
    text = str(error) if error else f"hook pipeline failed (check {runtime.env['HARNESS_LOG']})"
    runtime.stream.emit("error", message=text)
    return {"output": f"error: {text}"}


def tell_typed(runtime: Runtime, payload: Json) -> Json:
    """Append the messages typed during the turn; every call has its result here, so they may follow."""
    # A message that is taken is stored nowhere else yet.
    with processes.uninterrupted():
        for text in runtime.typed_meanwhile():
            runtime.session.append("user", {}, skills.called(runtime, text))
    return payload


def messages(runtime: Runtime, payload: Json) -> Json:
    """Add `messages`: the session's, on the API of its provider."""
    speaker = hosted.host(runtime).speaker(runtime)
    conversation = runtime.session.messages()
    replayed = context.load_native(runtime.session, conversation, speaker, runtime.kept)
    entries = context.entries(conversation, replayed)
    return {**payload, "messages": adapter(speaker.wire).messages(entries)}


def tools(runtime: Runtime, payload: Json) -> Json:
    """Add `tools`: the schema of each, by name, so that the beginning of every request is the same."""
    if runtime.servers and prepare(runtime):
        for plugin in known(runtime):
            if plugin[:3] not in runtime.table.entries:
                runtime.table.add(plugin)
    schemas = (schema_of(runtime, plugin) for plugin in runtime.table.of("tools"))
    return {**payload, "tools": [schema for schema in schemas if schema is not None]}


def schema_of(runtime: Runtime, plugin: Plugin) -> Json | None:
    """Return the schema of the tool `plugin`; None, reported once, if its name is not that of the file."""
    name, schema = plugin.name, cast("Tool", plugin.target).schema(runtime)
    if schema is None or (schema.get("name") == name and _NAME.fullmatch(name)):
        return schema
    other = schema.get("name")
    why = f"its schema has the name {other}" if other != name else "no host takes such a name"
    runtime.notice_once(f"the tool {name} is left out: {why}.")
    return None


def prompts(runtime: Runtime, payload: Json) -> Json:
    """Set `system` to the prompts of all sources and the instructions here, and go on to `send`."""
    if runtime.system is None:
        files = (
            Path(source, "prompts", name)
            for source in runtime.sources
            for name in disk.visible_names(f"{source}{os.sep}prompts")
            if name.endswith(".md")
        )
        owners = ((file, trust.project_of_source(runtime, str(file.parents[1]))) for file in files)
        parts = [_read_prompt(file, _PROMPT_LIMIT) for file, owner in owners if trust.has_text(owner, file)]
    else:
        parts = [runtime.system.strip()]
    parts += [_read_prompt(path, _AGENTS_LIMIT) for path in instructions(runtime)]
    system = "\n\n".join(part for part in parts if part)
    return {**payload, "system": system, "next_state": "send"}


def instructions(runtime: Runtime) -> list[Path]:
    """Return the AGENTS.md of home, beside each source, and from the repository's root to here.

    CLAUDE.md counts where there is none. A link out of the project is ignored: it could lead to a secret. Of
    a caller that has named its sources only what is beside those.
    """
    work_directory = runtime.work_directory.resolve()
    root = trust.project_root(runtime, work_directory)
    way = [path for path in (*reversed(work_directory.parents), work_directory) if path.is_relative_to(root)]
    beside = [Path(source).parent for source in runtime.sources]
    places = [(path, path) for path in beside if path not in way or runtime.without_core]
    if not runtime.without_core:
        places += [(path, root) for path in way]
    mine = runtime.home.parent / "AGENTS.md"
    files = [mine] if mine.is_file() and not runtime.without_core else []
    for directory, project in places:
        there = [path for name in ("AGENTS.md", "CLAUDE.md") if (path := directory / name).is_file()]
        files += [path for path in there[:1] if path not in files and trust.has_text(project, path)]
    return files


def _read_prompt(path: Path, limit: int) -> str:
    """Return the text of `path`, at most `limit` bytes; nothing if it cannot be read."""
    try:
        with path.open("rb") as stream:
            data = stream.read(limit + 1)
    except OSError:
        return ""
    text = data[:limit].decode("utf-8", "replace").strip()
    return f"{text}\n[{path} goes on; read the file for the rest]" if len(data) > limit else text


def catalogue(runtime: Runtime, payload: Json) -> Json:
    """Append the catalogue of skills to `system`."""
    available = skills.every(runtime)
    if not available:
        return payload
    lines = [
        f'<skill name="{skill.name}" path="{skill.path}">\n{skill.description}\n</skill>'
        for skill in available.values()
    ]
    text = "\n".join([_HEAD, "", "<available-skills>", *lines, "</available-skills>"])
    system = payload.get("system") or ""
    if not isinstance(system, str):
        raise HookError("a hook of the stage assemble has made a `system` that is not text")
    return {**payload, "system": f"{system}\n\n{text}".lstrip()}
