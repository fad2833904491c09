"""Draw events, edits and the status for the columns of a terminal."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit.formatted_text import StyleAndTextTuples
from rich.cells import chop_cells
from rich.console import Console
from rich.markdown import Markdown
from rich.text import Text

from harness_lib.hs import terminal
from harness_lib.hs.terminal import harmless_lines
from harness_lib.loop import context, hosted
from harness_lib.loop.piped import Json
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.tools import asking, builtin, files
from harness_lib.loop.wires.answer import as_table
from harness_lib.text import first, harmless, in_one_line

Fragments = StyleAndTextTuples
# Of what a running tool prints: characters kept, and rows shown.
_PRINTED = 8000
_PRINTED_ROWS = 8
# Of the lines below what streams: what runs, the status, and one for the terminal.
_ROOM = 4
_LEAST_LINES = 3
_THOUSAND = 1000


def last_rows(text: str, width: int, count: int) -> list[str]:
    """Return the last `count` lines of `text`, broken at `width` columns."""
    rows: list[str] = []
    # Some characters take no column, so look back twice as far.
    for line in text[-2 * width * count :].rstrip("\n").split("\n"):
        rows += chop_cells(line.expandtabs(4), max(2, width)) or [""]
    return rows[-count:] if text.strip() else []


def rows_of(text: str, width: int) -> list[str]:
    """Return `text` in rows of at most `width` columns, broken between words."""
    width = max(2, width)
    return [row.plain.rstrip() for row in Text(text).wrap(Console(width=width), width)]


def cut_row(text: str, width: int) -> str:
    """Return `text` in at most `width` columns."""
    row = Text(text)
    row.truncate(max(2, width), overflow="ellipsis")
    return row.plain


class Drawing:
    """Draws the events of a session; `show` puts text above the line that is typed in."""

    def __init__(
        self,
        runtime: Runtime,
        show: Callable[[str], None],
        draw: Callable[[], None],
        clear: Callable[[], None],
    ) -> None:
        self._runtime = runtime
        self._console = Console(highlight=False)
        self._show = show
        self._draw = draw
        # Clears the screen.
        self.clear = clear
        self._thought = ""
        self._said = ""
        self._runs = ""
        # What the running tool has printed last, the edit that runs, and those that the user has seen.
        self._printed = ""
        self._edit: builtin.Change | None = None
        self._asked: set[str] = set()

    def hear(self, event: Json) -> None:
        """Draw one event."""
        kind = event["type"]
        if kind in {"text", "thinking"}:
            text = harmless_lines(event.get("text", ""))
            self._said += text if kind == "text" else ""
            self._thought += text if kind == "thinking" else ""
            self._draw()
        elif kind in {"stop", "retry", "done"}:
            self.finish(drop=kind == "retry")
        if kind == "tool_run":
            self._run(event)
        elif kind == "tool_progress":
            self._printed = (self._printed + str(event.get("text", "")))[-_PRINTED:]
            self._draw()
        elif kind == "tool_output":
            self._tool(event)
        elif kind in {"retry", "error"}:
            self.note(str(event.get("message", "")), "red")
        elif kind == "held":
            self.note(f"held: {event.get('reason', '')}", "yellow")
        elif kind == "summary":
            self.note(f"The conversation so far was summarised ({event.get('seq')}-summary.md).")

    def note(self, text: str, style: str = "dim") -> None:
        """Show a note of hs."""
        self._print(Text(harmless_lines(text), style=style))

    def asked(self, question: asking.Question) -> str:
        """Return a question as it is shown."""
        self._asked.add(question.id)
        return self._drawn(_lines(terminal.question_lines(question)))

    def typed(self, text: str) -> None:
        """Show what the user has sent."""
        self._print(Text.assemble(("You: ", "bold cyan"), harmless_lines(text)))

    def answered(self, text: str) -> None:
        """Show an answer that is complete."""
        if text.strip():
            # The address behind a link is shown: its text may say another one.
            self._print(Markdown(harmless_lines(text), hyperlinks=False))

    def finish(self, *, drop: bool = False) -> None:
        """Show what has streamed as complete; `drop` it if it does not count."""
        thought, self._thought = self._thought.strip(), ""
        answer, self._said = self._said, ""
        self._runs = self._printed = ""
        if thought and not drop:
            self.note(thought)
        if not drop:
            self.answered(answer)
        self._draw()

    def live(self, below: int) -> Fragments:
        """Return the newest rows of the stream and of the running tool, leaving room for `below` rows."""
        width, height = self._console.size
        room = max(_LEAST_LINES, height - _ROOM - below)
        style, text = ("ansibrightblack", self._thought) if not self._said else ("", self._said)
        shown: Fragments = [(style, f"{line}\n") for line in last_rows(text, width, room)]
        if not self._runs:
            return shown
        # Show only the last state of a line that is redrawn.
        lines = [line.rstrip("\r").rpartition("\r")[2] for line in self._printed.split("\n")]
        printed = last_rows(harmless_lines("\n".join(lines)), width, min(room, _PRINTED_ROWS))
        return [
            *shown,
            *(("ansibrightblack", f"{line}\n") for line in [cut_row(self._runs, width), *printed]),
        ]

    def width(self) -> int:
        """Return how many columns there are."""
        return self._console.width

    def _run(self, event: Json) -> None:
        name, tool_input = str(event.get("name")), as_table(event.get("input"))
        self._runs, self._printed = in_one_line(f"{name}: {_about(tool_input)}"), ""
        # Computed before the edit changes the file.
        self._edit = builtin.change_of(self._runtime, name, tool_input)
        if self._edit and event.get("id") not in self._asked:
            shown = files.unified(self._edit, 60)
            self._print(_lines([("dim", f"--- {harmless(name)} ---"), *terminal.difference(shown)]))
        self._draw()

    def _tool(self, event: Json) -> None:
        self._runs = self._printed = ""
        edit, self._edit = self._edit, None
        output = str(event.get("text", "")).splitlines()
        if edit:
            # Its difference has been shown; the indented lines are the call's input.
            output = [line for line in output[1:] if not line.startswith(" ")][:1]
        self.note("\n".join(first(output, 12, " lines")))

    def _print(self, renderable: Text | Markdown) -> None:
        self._show(self._drawn(renderable))

    def _drawn(self, renderable: Text | Markdown) -> str:
        with self._console.capture() as shown:
            self._console.print(renderable)
        return shown.get()


def _lines(lines: list[terminal.Line]) -> Text:
    return Text("\n").join(Text(text, style=style) for style, text in lines)


def _about(tool_input: Json) -> str:
    return str(
        tool_input.get("command")
        or tool_input.get("path")
        or " ".join(str(value) for value in tool_input.values())
    )


def status(runtime: Runtime) -> str:
    """Return the status line."""
    messages = runtime.session.messages()
    account = context.total(messages)
    limit = hosted.model_of(runtime).context
    used = f"{short(context.tokens(messages))}{f' of {short(limit)}' if limit else ''}"
    cost = account.shown() if account.cost is None else f"${account.shown()}"
    tokens = f"{short(account.tokens_in)} in, {short(account.tokens_out)} out"
    return f" {runtime.model}  context {used}  tokens {tokens}  cost {cost} "


def short(number: int) -> str:
    """Return `number` in a few characters: 999, 12.3k, 1.2M."""
    if number < _THOUSAND:
        return str(number)
    value, unit = (number / _THOUSAND, "k") if number < _THOUSAND**2 else (number / _THOUSAND**2, "M")
    return f"{value:.1f}".removesuffix(".0") + unit
