"""Turn what happens in a session into the protocol's updates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from acp import schema

from harness_lib.loop.piped import Json
from harness_lib.loop.sessions.message import Call, Message, Text, Thinking

_KINDS = {"bash": "execute", "glob": "search", "grep": "search", "read_file": "read", "skill": "read"}
_EDITS = ("edit_file", "replace", "write_file")
_TITLE = 200


class Updates:
    """Turns the events of one session into updates; knows which calls the client has been told of."""

    def __init__(self, cwd: Path) -> None:
        self._cwd = cwd
        self._open: dict[str, Json] = {}

    def of(self, event: Json) -> list[Any]:
        """Return the updates for `event`."""
        convert = getattr(self, f"_on_{event.get('type')}", None)
        return list(convert(event)) if convert else []

    def abandoned(self) -> list[Any]:
        """Return a failure for each call that nothing will come of any more."""
        left, self._open = list(self._open), {}
        return [_progress(tool_call_id=each, status="failed") for each in left]

    def replay(self, messages: Sequence[Message]) -> Iterator[Any]:
        """Yield the updates that tell a client the whole conversation so far."""
        for message in messages:
            if message.role == "user":
                yield _chunk(schema.UserMessageChunk, "user_message_chunk", message.body)
            elif message.role == "assistant":
                yield from self._replayed(message)
            elif message.role == "tool_result":
                event = {"id": message.fields.get("call_id", ""), "error": message.fields.get("error")}
                yield from self._on_tool_done({**event, "result": message.body})
        yield from self.abandoned()

    def _replayed(self, message: Message) -> Iterator[Any]:
        for block in message.blocks:
            if isinstance(block, Text):
                yield from self._on_text({"text": block.text})
            elif isinstance(block, Thinking):
                yield from self._on_thinking({"text": block.text})
            elif isinstance(block, Call):
                yield from self._on_tool_start({"id": block.id, "name": block.name, "input": block.input})

    def _on_text(self, event: Json) -> Iterator[Any]:
        yield _chunk(schema.AgentMessageChunk, "agent_message_chunk", str(event.get("text", "")))

    def _on_thinking(self, event: Json) -> Iterator[Any]:
        yield _chunk(schema.AgentThoughtChunk, "agent_thought_chunk", str(event.get("text", "")))

    def _on_retry(self, event: Json) -> Iterator[Any]:
        yield from self._on_notice(event)

    def _on_held(self, event: Json) -> Iterator[Any]:
        yield from self._on_notice({"message": f"held: {event.get('reason', '')}"})

    def _on_summary(self, event: Json) -> Iterator[Any]:
        yield from self._on_notice({"message": f"The conversation was summarised ({event.get('seq')})."})

    def _on_notice(self, event: Json) -> Iterator[Any]:
        # The protocol has no place for what is neither the model's nor the person's.
        yield from self._on_thinking({"text": f"{event.get('message', '')}\n"})

    def _on_tool_start(self, event: Json) -> Iterator[Any]:
        if event.get("id") not in self._open:
            self._open[str(event["id"])] = event
            yield schema.ToolCallStart(session_update="tool_call", status="pending", **self._shown(event))

    def _on_tool_run(self, event: Json) -> Iterator[Any]:
        # A gate may have changed the input; and a foreign provider tells nobody of a call before it runs.
        yield from self._on_tool_start(event)
        yield _progress(status="in_progress", **self._shown(event))

    def _on_tool_done(self, event: Json) -> Iterator[Any]:
        self._open.pop(str(event["id"]), None)
        diff = event.get("diff")
        text = schema.TextContentBlock(type="text", text=str(event.get("result", "")))
        content: Any = schema.ContentToolCallContent(type="content", content=text)
        if diff:
            content = schema.FileEditToolCallContent(
                type="diff", path=diff["path"], old_text=diff["old"], new_text=diff["new"]
            )
        status = "failed" if event.get("error") == "true" else "completed"
        yield _progress(tool_call_id=str(event["id"]), status=status, content=[content])

    def _on_usage(self, event: Json) -> Iterator[Any]:
        cost = schema.Cost(amount=event["cost"], currency="USD") if event["cost"] is not None else None
        yield schema.UsageUpdate(
            session_update="usage_update", used=event["used"], size=event["size"], cost=cost
        )

    def _shown(self, event: Json) -> Json:
        """Return what a client shows of a call before it has a result."""
        name, tool_input = str(event.get("name")), event.get("input") or {}
        path = tool_input.get("path")
        offset = tool_input.get("offset")
        line = offset if isinstance(offset, int) and offset >= 0 else None
        place = str(self._cwd / path) if isinstance(path, str) and path and "\0" not in path else None
        return {
            "tool_call_id": str(event["id"]),
            "title": title(name, tool_input),
            "kind": "edit" if name in _EDITS else _KINDS.get(name, "other"),
            "locations": [schema.ToolCallLocation(path=place, line=line)] if place else None,
            "raw_input": tool_input,
        }

    def asked(self, call: Json) -> schema.ToolCallUpdate:
        """Return the call that a person is asked about."""
        return schema.ToolCallUpdate(status="pending", **self._shown(call))


def title(name: str, tool_input: Json) -> str:
    """Return one line that says what a call is about."""
    about = tool_input.get("command") if name == "bash" else tool_input.get("path") or tool_input.get("name")
    text = " ".join(str(about).split()) if about else ""
    return (text if name == "bash" and text else f"{name} {text}".rstrip())[:_TITLE]


def config(options: Sequence[Json]) -> list[Any]:
    """Return the settings of a session as the protocol has them."""
    return [
        schema.SessionConfigOptionSelect(
            type="select",
            id=each["id"],
            name=each["name"],
            category=cast("Any", {"model": "model", "approval": "mode"}.get(each["id"])),
            current_value=each["value"],
            options=[
                schema.SessionConfigSelectOption(value=value, name=name)
                for value, name in each["options"].items()
            ],
        )
        for each in options
    ]


def commands(known: Sequence[Json]) -> schema.AvailableCommandsUpdate:
    """Return the slash commands of a session."""
    hint = schema.AvailableCommandInput(schema.UnstructuredCommandInput(hint="what to do"))
    available = [schema.AvailableCommand(input=hint, **each) for each in known]
    return schema.AvailableCommandsUpdate(
        session_update="available_commands_update", available_commands=available
    )


def _progress(**values: Any) -> schema.ToolCallProgress:
    return schema.ToolCallProgress(session_update="tool_call_update", **values)


def _chunk(kind: Any, name: str, text: str) -> Any:
    return kind(session_update=name, content=schema.TextContentBlock(type="text", text=text))
