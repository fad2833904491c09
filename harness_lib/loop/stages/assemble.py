"""The stage `assemble`: the history and the tools, as the provider's wire wants them."""

from __future__ import annotations

import re

from harness_lib.loop.failures import HookError, ProviderError
from harness_lib.loop.mcp.tools import known, prepare
from harness_lib.loop.piped import Json, Piped, as_object
from harness_lib.loop.plugins import Tool
from harness_lib.loop.providers import endpoints
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.sessions import history, native
from harness_lib.loop.wires import exchange

# What both wires take; a host refuses every request in which one tool has another.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def messages(runtime: Runtime, piped: Piped) -> Piped:
    """Add `messages`: the session's, on the wire of its provider."""
    payload = as_object(piped) or {}
    try:
        endpoint = endpoints.of(runtime)
    except ProviderError as error:
        raise HookError(str(error), {"error": str(error)}) from error
    if runtime.session is None:
        return {**payload, "messages": []}
    conversation = runtime.session.messages()
    speaker = (endpoint.wire, endpoint.provider, endpoint.model)
    replayed = native.load(runtime.session, conversation, speaker, runtime.kept)
    return {
        **payload,
        "messages": exchange.wire(endpoint.wire).messages(history.entries(conversation, replayed)),
    }


def tools(runtime: Runtime, piped: Piped) -> Piped:
    """Add `tools`: the schema of each, by name, so that the beginning of every request is the same."""
    if prepare(runtime):
        for plugin in known(runtime):
            if plugin.key not in runtime.table.entries:
                runtime.table.add(plugin)
    schemas = []
    for plugin in runtime.table.of("tools"):
        schema = schema_of(runtime, plugin.name, plugin.target)
        if schema is not None:
            schemas.append(schema)
    return {**(as_object(piped) or {}), "tools": schemas}


def schema_of(runtime: Runtime, name: str, tool: Tool) -> Json | None:
    """Return the schema of `tool`; None, said once, where it names another tool than its file."""
    schema = tool.schema(runtime)
    if schema is None or (schema.get("name") == name and _NAME.fullmatch(name)):
        return schema
    reported: set[str] = runtime.kept.setdefault("misnamed", set())
    if name not in reported:
        reported.add(name)
        other = schema.get("name")
        why = f"its schema has the name {other}" if other != name else "no host takes such a name"
        runtime.notice(f"the tool {name} is left out: {why}.")
    return None
