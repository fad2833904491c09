"""Record the pictures of the pages: real output, drawn by rich.

Run: python docs/picture.py, which records `harness demo` as docs/demo.svg, or python docs/picture.py hs,
which records `hs` in tmux with a scripted model as docs/hs-edit.svg and docs/hs-live.svg.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT))
from tests.loop.servers.openai import OpenAI  # noqa: E402 (found in the checkout)
from tests.loop.servers.script import ModelServer, Step, Use, say, use  # noqa: E402

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
    _write(console, "harness demo", "demo.svg")


def _write(console: Console, title: str, name: str) -> None:
    drawn = console.export_svg(title=title, unique_id=Path(name).stem)
    # A picture in a README may load nothing; its text is shown in the reader's own font.
    drawn = re.sub(r"\s*@font-face \{.*?\}", "", drawn, flags=re.DOTALL)
    (CHECKOUT / "docs" / name).write_text(drawn, encoding="utf-8")


ROWS = 24
CALC = "def add(a, b):\n    return a - b\n\n\ndef double(a):\n    return add(a, a)\n"
TEST = (
    "import time\n\nimport calc\n\n\n"
    "def test_double():\n    time.sleep(1)\n    assert calc.double(2) == 4\n\n\n"
    "def test_add():\n    time.sleep(20)\n    assert calc.add(1, 2) == 3\n"
)
FIX = use("replace", path="calc.py", old="return a - b", new="return a + b")
WHY = "`double` adds, and `add` **subtracts**: the sign is wrong."
EDIT: list[Step] = [
    use("grep", pattern="add", glob="*.py"),
    Step(text=WHY, uses=FIX.uses),
    say("Fixed."),
]
ALLOWED = '{"permissions": {"allow": ["Bash(python -m pytest:*)"]}}'
RUN = Step(text="I run the tests.", uses=(Use("bash", {"command": "python -m pytest -v test_calc.py"}),))


def hs() -> None:
    """Record two moments of `hs`: a question about an edit, and a command that runs."""
    _talk("hs-edit.svg", EDIT, CALC, [("why does @calc.py fail?", "or say why not:")])
    fixed = CALC.replace("-", "+")
    _talk("hs-live.svg", [RUN], fixed, [("/cots", "Did you mean /cost?"), ("run the tests", "PASSED")])


def _talk(name: str, steps: Sequence[Step], calc: str, typed: Sequence[tuple[str, str]]) -> None:
    """Type each text at the prompt and wait for what is to be seen; draw the screen then."""
    server = ModelServer(OpenAI, list(steps))
    with tempfile.TemporaryDirectory() as directory:
        home, project = Path(directory, "home"), Path(directory, "project")
        (home / ".harness").mkdir(parents=True)
        project.mkdir()
        (home / ".harness" / "settings.json").write_text(ALLOWED, encoding="utf-8")
        (project / "calc.py").write_text(calc, encoding="utf-8")
        (project / "test_calc.py").write_text(TEST, encoding="utf-8")
        env = {"HOME": str(home), "OPENAI_API_URL": f"{server.address}/v1/chat/completions", "PATH": _path()}
        words = [f"{key}={value}" for key, value in env.items()]
        command = shlex.join(["env", *words, sys.executable, "-m", "harness_lib.hs"])
        tmux = ["tmux", "-L", f"picture-{os.getpid()}"]
        size = ["-x", str(WIDTH), "-y", str(ROWS)]
        subprocess.run([*tmux, "new-session", "-d", *size, "-c", str(project), command], check=True)
        try:
            _wait_for(tmux, "You:")
            for text, seen in typed:
                subprocess.run([*tmux, "send-keys", "-l", text], check=True)
                subprocess.run([*tmux, "send-keys", "Enter"], check=True)
                shown = _wait_for(tmux, seen)
        finally:
            subprocess.run([*tmux, "kill-server"], check=True)
            server.shutdown()
        # The name of the temporary directory is of no interest and differs each time.
        shown = shown.replace(str(project), "~/project").rstrip()
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(shown))
    _write(console, "hs", name)


def _path() -> str:
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def _wait_for(tmux: Sequence[str], seen: str) -> str:
    """Return the screen with its colours as soon as `seen` stands on it."""
    for _ in range(600):
        shown = subprocess.run(
            [*tmux, "capture-pane", "-ep"], capture_output=True, text=True, check=True
        ).stdout
        if seen in re.sub(r"\x1b\[[0-9;]*m", "", shown):
            return shown
        time.sleep(0.1)
    raise SystemExit(f"{seen!r} was not shown:\n{shown}")


def _colour(line: str) -> str:
    return next((style for pattern, style in COLOURS.items() if re.match(pattern, line)), "")


if __name__ == "__main__":
    hs() if sys.argv[1:] == ["hs"] else main()
