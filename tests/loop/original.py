"""The original engine, as far as a session knows it: reads message files, asks a host, writes message files.

Written from the description of the format alone, and strict where the original is: a last line without a line
break is lost, calls end at a line of three backticks, and nothing is escaped.
"""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]
STAMP = "2026-03-24T14:30:22+01:00"
_STOPS = {"stop": "end", "tool_calls": "tool_calls"}


@dataclass(frozen=True)
class Original:
    """An engine that works in the session `directory`, with a host at `url` that speaks chat completions."""

    directory: Path
    url: str

    def begin(self, cwd: Path) -> None:
        """Make the session."""
        (self.directory / "messages").mkdir(parents=True)
        lines = [f"id={self.directory.name}", "model=model-one", "provider=openai"]
        text = "\n".join([*lines, f"created={STAMP}", f"cwd={cwd}", ""])
        (self.directory / "session.conf").write_text(text)

    def turn(self, said: str) -> str:
        """Save what the user says, follow the calls of the model, and return its answer."""
        self._save("user", {}, said)
        while True:
            native = self._ask(self.messages())
            text, calls = self._receive(native)
            if not calls:
                return text
            for call in calls:
                self._run(call)

    def messages(self) -> list[Json]:
        """Return the history on the wire of the provider."""
        history: list[Json] = []
        for path in sorted((self.directory / "messages").glob("*.md")):
            fields, body = _read(path)
            role = fields.get("role")
            if role == "user":
                history.append({"role": "user", "content": body})
            elif role == "assistant":
                history.append(self._assistant(_blocks(body)))
            elif role == "tool_result":
                history.append({"role": "tool", "tool_call_id": fields["call_id"], "content": body})
        return history

    def _assistant(self, blocks: list[Json]) -> Json:
        # Thinking goes out as text, as it stands in the file.
        said = [block["text"] for block in blocks if block["type"] == "text"]
        calls = [
            {
                "id": b["id"],
                "type": "function",
                "function": {"name": b["name"], "arguments": json.dumps(b["input"])},
            }
            for b in blocks
            if b["type"] == "tool_use"
        ]
        spoken: Json = {"role": "assistant", "content": "\n".join(said).strip(), "tool_calls": calls}
        return {key: value for key, value in spoken.items() if value}

    def _ask(self, messages: list[Json]) -> list[Json]:
        headers = {"content-type": "application/json"}
        body = json.dumps({"model": "model-one", "max_tokens": 99, "messages": messages, "stream": True})
        request = urllib.request.Request(self.url, body.encode(), headers)
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
            lines = [line.decode().strip() for line in answer]
        data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
        return [json.loads(line) for line in data if line != "[DONE]"]

    def _receive(self, events: list[Json]) -> tuple[str, list[Json]]:
        text, calls, stop = _chat(events)
        body = f"{text}\n" if text else ""
        for call in calls:
            body += f"\n```tool_call id={call['id']} name={call['name']}\n{call['arguments']}\n```\n"
        about = {"model": "model-one", "provider": "openai", "stop": _STOPS[stop]}
        self._save("assistant", about | {"tokens_in": "1", "tokens_out": "1"}, body)
        return text, calls

    def _run(self, call: Json) -> None:
        command = json.loads(call["arguments"])["command"]
        done = subprocess.run(
            ["bash", "-c", command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        self._save(
            "tool_result", {"call_id": call["id"], "tool": "bash", "error": "false"}, done.stdout.rstrip("\n")
        )

    def _save(self, role: str, fields: dict[str, str], body: str) -> None:
        names = [path.name for path in (self.directory / "messages").iterdir()]
        number = 1 + max((int(digits[0]) for name in names if (digits := re.match(r"\d+", name))), default=0)
        head = {"role": role, "seq": f"{number:04d}", "timestamp": STAMP, **fields}
        text = "".join(f"{key}: {value}\n" for key, value in head.items())
        path = self.directory / "messages" / f"{number:04d}-{role}.md"
        path.write_text(f"---\n{text}---\n{body}\n")


def _read(path: Path) -> tuple[dict[str, str], str]:
    """Return frontmatter and body; what follows the last line break is lost, and one of the body."""
    lines = path.read_text().split("\n")[:-1]
    end = lines.index("---", 1)
    fields = dict(line.split(": ", 1) for line in lines[1:end] if ": " in line)
    return fields, "\n".join(lines[end + 1 :])


def _blocks(body: str) -> list[Json]:
    """Return the text, the thinking and the calls of an answer; lines of a call are joined by nothing."""
    blocks: list[Json] = []
    said: list[str] = []
    lines = iter(body.split("\n"))
    for line in lines:
        call = re.match(r"```tool_call id=(\S+) name=(\S+)", line)
        thinking = re.match(r"```thinking signature=(.*)", line)
        if not call and not thinking:
            said.append(line)
            continue
        blocks.append({"type": "text", "text": "\n".join(said).removesuffix("\n")})
        said = []
        inside = []
        for inner in lines:
            if inner == "```":
                break
            inside.append(inner)
        if call:
            blocks.append(
                {"type": "tool_use", "id": call[1], "name": call[2], "input": json.loads("".join(inside))}
            )
        elif thinking:
            blocks.append({"type": "text", "text": "\n".join(inside)})
    return [*blocks, {"type": "text", "text": "\n".join(said).removesuffix("\n")}]


def _chat(events: list[Json]) -> tuple[str, list[Json], str]:
    calls: dict[int, Json] = {}
    text, stop = "", ""
    for choice in (choice for event in events for choice in event["choices"]):
        text += choice["delta"].get("content") or ""
        stop = choice["finish_reason"] or stop
        for part in choice["delta"].get("tool_calls", []):
            function = part["function"]
            call = calls.setdefault(
                part["index"], {"id": part.get("id"), "name": function.get("name"), "arguments": ""}
            )
            call["arguments"] += function.get("arguments", "")
    return text, list(calls.values()), stop
