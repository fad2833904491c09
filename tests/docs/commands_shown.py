"""The commands of harness that a page shows, in its sentences and in its blocks for a shell."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from harness_lib.cli import parser
from harness_lib.cli.parser import parse

INLINE = re.compile(r"`(harness [a-z][^`]*)`")
# In a table or a sentence: what the reader fills in stands for a word, and a plural for several commands.
OPEN = re.compile(r"[…\[]|\bVERB\b|'$")
FILLED = {"N": "1", "NAME": "codex"}


def can_be_typed(page: Path) -> None:
    """Fail unless each command of `page` names a verb and options that there are."""
    names = {*parser.known()}
    for command in _shown(page):
        words = [FILLED.get(word, word) for word in shlex.split(command, comments=True)[1:]]
        assert words[0] in names, command
        if "--help" not in words and len(words) > 1:
            parse(words)


def _shown(page: Path) -> list[str]:
    text = page.read_text(encoding="utf-8")
    lines = [line for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    typed = [
        command for line in lines for command in re.findall(r"(?:^|\w/|&& |\S=\S+ )(harness [a-z].*)", line)
    ]
    return [command for command in (*INLINE.findall(text), *typed) if not OPEN.search(command)]
