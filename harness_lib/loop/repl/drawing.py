"""What a person sees of a turn: plain text while it streams, Markdown when an answer is complete."""

from __future__ import annotations

from rich.console import Console
from rich.live import Live
from rich.markdown import Markdown
from rich.text import Text

from harness_lib.loop.piped import Json
from harness_lib.text import harmless

_KEPT = "\n\t"
_SHOWN_LINES = 12
_ROOM = 4


class Drawing:
    """Listens to the events of a session."""

    def __init__(self) -> None:
        self.console = Console(highlight=False)
        self._said = ""
        self._live: Live | None = None

    def hear(self, event: Json) -> None:
        """Draw one event."""
        kind = event["type"]
        if kind == "text":
            self._stream(str(event.get("text", "")))
        elif kind in {"stop", "retry", "done"}:
            self.finish(drop=kind == "retry")
        if kind == "tool_output":
            self._tool(str(event.get("text", "")))
        elif kind in {"retry", "error"}:
            self.note(str(event.get("message", "")), "red")
        elif kind == "held":
            self.note(f"held: {event.get('reason', '')}", "yellow")

    def note(self, text: str, style: str = "dim") -> None:
        """Show a line of ours."""
        self.console.print(Text(harmless(text, keep=_KEPT), style=style))

    def finish(self, *, drop: bool = False) -> None:
        """End what streams: the answer is complete, or what came of it does not count."""
        if self._live is not None:
            self._live.stop()
            self._live = None
        if self._said.strip() and not drop:
            self.console.print(Markdown(self._said))
        self._said = ""

    def _stream(self, text: str) -> None:
        self._said += harmless(text, keep=_KEPT)
        if self._live is None:
            self._live = Live(console=self.console, transient=True, refresh_per_second=8)
            self._live.start()
        # What does not fit on the screen could not be taken back when the Markdown comes.
        lines = self._said.splitlines()[-max(1, self.console.height - _ROOM) :]
        self._live.update(Text("\n".join(lines)))

    def _tool(self, text: str) -> None:
        lines = text.splitlines()
        more = [f"... ({len(lines) - _SHOWN_LINES} more lines)"] if len(lines) > _SHOWN_LINES else []
        self.note("\n".join([*lines[:_SHOWN_LINES], *more]))
