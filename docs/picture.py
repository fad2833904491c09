"""Record `harness demo` as docs/demo.svg: real output, drawn by rich.

Run: python docs/picture.py
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

CHECKOUT = Path(__file__).resolve().parents[1]
WIDTH = 108
COLOURS = {
    r"^the run was killed with SIGKILL.*$": "bold red",
    r"^\$ .*$": "bold cyan",
    r"^  \[\d\] \S+ failed.*$": "red",
    r"^  \[\d\] \S+ goes back.*$": "yellow",
    r"^  (\[\d\] \S+ completed|recovered ).*$": "green",
    r"^\[completed\].*$": "green",
    r"^\[failed\].*$": "red",
}


def main() -> None:
    """Run the demo and draw what it printed; a demo that fails leaves the picture as it is."""
    shown = subprocess.run(
        [sys.executable, "-m", "harness_lib", "demo"],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    # The name of the temporary directory is of no interest and differs each time.
    shown = re.sub(r"/\S*/harness-demo-\w+", "DEMO", shown)
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    for line in shown.splitlines():
        console.print(Text(line, style=_colour(line), overflow="ellipsis", no_wrap=True))
    drawn = console.export_svg(title="harness demo")
    # A picture in a README may load nothing; its text is shown in the reader's own font.
    drawn = re.sub(r"\s*@font-face \{.*?\}", "", drawn, flags=re.DOTALL)
    (CHECKOUT / "docs" / "demo.svg").write_text(drawn, encoding="utf-8")


def _colour(line: str) -> str:
    return next((style for pattern, style in COLOURS.items() if re.match(pattern, line)), "")


if __name__ == "__main__":
    main()
