"""The mutants of a room: what was broken in each, and what is remembered of them in `mutants/ROOM.json`."""

from __future__ import annotations

import argparse
import ast
import difflib
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
WORK = CHECKOUT / "mutants"
ROOMS = ("rules", "hookio", "state", "attempts")
FATES = ("killed", "survived", "timed out")


@dataclass(frozen=True)
class Mutant:
    """One place broken: its name for mutmut, its function, the lines as they were and as they became.

    `body`: a hash of the broken function, by which its fate is known again. `fate`: one of FATES, or "".
    `lines`: where the statement stands unbroken in the file with the mutants; none for a head of a function.
    `key`: its name in samples and comparisons. `killer`: the test that has noticed it.
    """

    name: str
    function: str
    was: str
    became: str
    body: str
    fate: str = ""
    lines: Sequence[int] = ()
    key: str = ""
    killer: str = ""


def of(file: Path, module: str) -> Iterator[Mutant]:
    """Yield the mutants in `file`, which mutmut has written for `module`."""
    text = file.read_text()
    rows = text.replace(" # type: ignore # mutmut generated", "").split("\n")
    functions = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))
    nodes = {node.name: node for node in functions if "__mutmut_" in node.name}
    sources = {name: _source(node, rows) for name, node in nodes.items()}
    for name, source in sources.items():
        original = f"{name.partition('__mutmut_')[0]}__mutmut_orig"
        if name != original:
            was, became = _difference(sources[original], source)
            # A default in the head may be broken, too.
            body = source[source[0] == sources[original][0] :]
            digest = hashlib.sha256("\n".join(body).encode()).hexdigest()
            lines = _lines(nodes[original], _changed(sources[original], source))
            yield Mutant(f"{module}.{name}", _dotted(f"{module}.{name}"), was, became, digest, lines=lines)


def _source(node: ast.FunctionDef, rows: list[str]) -> list[str]:
    """Return the lines of a function, under the name that it has without mutants."""
    head, *body = rows[node.lineno - 1 : node.end_lineno]
    return [head.replace(node.name, _dotted(f".{node.name}").rpartition(".")[2], 1), *body]


def _changed(before: list[str], after: list[str]) -> list[int]:
    """Return the places in `before` of what differs in `after`; of what is only added, that before it."""
    blocks = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [
        place
        for kind, start, end, *_ in blocks
        if kind != "equal"
        for place in range(min(start, end - 1), end)
    ]


def _lines(function: ast.FunctionDef, places: list[int]) -> list[int]:
    """Return the lines of the statements in which these places of `function` are: one runs, or none does."""
    lines: set[int] = set()
    for line in (function.lineno + place for place in places):
        around = [
            node
            for node in ast.walk(function)
            if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0)
        ]
        inner = max(around, key=lambda node: (node.lineno, -(node.end_lineno or 0)))
        if inner is function:
            return []
        body = getattr(inner, "body", None)
        last = body[0].lineno - 1 if body else inner.end_lineno or 0
        # Of a statement with others inside only its head, unless it is none of both, as `except` is.
        lines.update(range(inner.lineno, (last if line <= last else inner.end_lineno or 0) + 1))
    return sorted(lines)


def options(argv: Sequence[str]) -> argparse.Namespace:
    """Return what was typed after `bin/mutate`."""
    parser = argparse.ArgumentParser(prog="bin/mutate")
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"of {', '.join(ROOMS)}; default: all")
    parser.add_argument("--sample", type=int, metavar="N", help="try N mutants of each room, all anew")
    parser.add_argument("--seed", type=int, default=1, help="which sample (default: 1)")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write what came of the sample")
    parser.add_argument("--before", type=Path, metavar="FILE", help="compare with what --save wrote")
    parser.add_argument("--new", action="store_true", help="show survivors as survivors.json has them")
    typed = parser.parse_args(argv)
    typed.rooms = typed.rooms or list(ROOMS)
    return typed


def memory(room: str, typed: argparse.Namespace) -> Path:
    """Return the file that remembers what came of the mutants of `room`."""
    return WORK / (f"{room}.json" if typed.sample is None else f"{room}.sample-{typed.seed}.json")


def sample(mutants: Sequence[Mutant], size: int, seed: int) -> list[Mutant]:
    """Return `size` of `mutants`: the same ones when files or other lines of their functions have changed."""
    return sorted(named(mutants), key=lambda each: hashlib.sha256(f"{seed} {each.key}".encode()).digest())[
        :size
    ]


def named(mutants: Sequence[Mutant]) -> list[Mutant]:
    """Return `mutants` with their keys."""
    seen: Counter[str] = Counter()
    found = []
    for each in mutants:
        function = _dotted(each.name).removeprefix(f"{each.name.rpartition('.')[0]}.")
        key = f"{function}: {each.was} => {each.became}"
        seen[key] += 1
        found.append(replace(each, key=key if seen[key] == 1 else f"{key} ({seen[key]})"))
    return found


def fates(document: object) -> dict[str, dict[str, str]]:
    """Return what came of the mutants of each room, by their keys, from what --save wrote or a memory.

    Raises ValueError if `document` is neither.
    """
    if isinstance(document, dict):
        return document
    if not isinstance(document, list) or not all(isinstance(each, dict) for each in document):
        raise ValueError("it is neither what --save wrote nor a file of mutants/")
    found: dict[str, dict[str, str]] = {}
    for each in (Mutant(**each) for each in document):
        if each.fate:
            found.setdefault(each.name.split(".")[1], {})[each.key] = each.fate
    return found


def known(file: Path) -> list[Mutant]:
    """Return what is remembered in `file`."""
    return [Mutant(**each) for each in json.loads(file.read_bytes())] if file.exists() else []


def remember(file: Path, mutants: Sequence[Mutant]) -> None:
    file.write_text(json.dumps([asdict(each) for each in mutants]))


def _difference(before: list[str], after: list[str]) -> tuple[str, str]:
    """Return the changed lines, without what they are indented by, each side on one line."""
    rows = [row for row in difflib.unified_diff(before, after, n=0, lineterm="") if row[:3] not in _HEADS]
    was, became = (" ".join(row[1:].strip() for row in rows if row[0] == side) for side in "-+")
    return was, became


_HEADS = ("---", "+++", "@@ ")


def _dotted(name: str) -> str:
    """Return the name of the function: mutmut says `x_name__mutmut_1` or `xǁClassǁname__mutmut_1`."""
    module, _, mangled = name.partition("__mutmut_")[0].rpartition(".")
    if "ǁ" in mangled:
        return f"{module}{mangled[1:].replace('ǁ', '.')}"
    return f"{module}.{mangled.removeprefix('x_')}"
