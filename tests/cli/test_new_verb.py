"""A new verb is one file of its name; nothing else is touched.

It is put into a copy of the library, which then runs the verb from the command line.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

VERB = '''"""`harness hello`: greet somebody."""

from harness_lib.core.context import Reply

SUMMARY = "greet somebody"
EXAMPLE = "harness hello Ann"
HELP_ORDER = 15


def arguments(parser):
    parser.add_argument("name", help="who is there")


def answer(ctx, args):
    return Reply(f"Hello, {args.name}.")
'''


def test_a_new_verb_is_one_file_and_is_typed_listed_and_meant(tmp_path: Path) -> None:
    top = tmp_path / "copy"
    shutil.copytree(ROOT / "harness_lib", top / "harness_lib")
    (top / "harness_lib/verbs/hello.py").write_text(VERB)

    def typed(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "harness_lib", *words]
        return subprocess.run(command, cwd=top, capture_output=True, encoding="utf-8", check=False)

    assert typed("hello", "Ann").stdout.splitlines()[0] == "Hello, Ann."
    listed = typed("--help").stdout
    assert (
        listed.index("    init ") < listed.index("    hello       greet somebody") < listed.index("    add ")
    )
    assert "example: harness hello Ann" in typed("hello", "--help").stdout
    assert "Did you mean: harness hello" in typed("hallo").stderr


def test_the_page_for_contributors_names_these_files() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    (sentence,) = (line for line in page.splitlines() if line.startswith("A new verb is "))

    assert "one file" in sentence
    assert re.findall(r"`([a-z_/]+/)`", sentence) == ["verbs/"]
