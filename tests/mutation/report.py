"""Say how many mutants of each room the tests have killed, and which survive without a reason.

Reads what mutmut left in `mutants/`, and the reasons in `survivors.json`: patterns of functions.
Exit 1: a room is below the bar, or a survivor has no reason.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

BAR = 0.9
_HERE = Path(__file__).resolve().parent
_MUTANTS = _HERE.parents[1] / "mutants"
_SURVIVED = (0, 33)  # the tests passed; no test runs the function


def main() -> int:
    reasons: dict[str, str] = json.loads((_HERE / "survivors.json").read_bytes())
    killed: Counter[str] = Counter()
    survivors: list[str] = []
    for meta in sorted(_MUTANTS.rglob("*.py.meta")):
        for mutant, code in json.loads(meta.read_bytes())["exit_code_by_key"].items():
            if code in _SURVIVED:
                survivors.append(mutant)
            elif code is not None:
                killed[_room(mutant)] += 1
    lost = Counter(map(_room, survivors))
    low = False
    for room in sorted({*killed, *lost}):
        share = killed[room] / (killed[room] + lost[room])
        low = low or share < BAR
        print(f"{room}: {killed[room]} of {killed[room] + lost[room]} killed, {share:.1%}")
    unexplained = [name for name in survivors if not any(fnmatch(_function(name), each) for each in reasons)]
    for name in unexplained:
        print(f"survives without a reason: {name}    (look: .venv/bin/mutmut show {name})")
    return 1 if low or unexplained else 0


def _room(mutant: str) -> str:
    return ".".join(mutant.split(".")[:2])


def _function(mutant: str) -> str:
    """Return the dotted name of the function that was broken: mutmut says `x_name` or `xǁClassǁname`."""
    module, _, name = mutant.partition("__mutmut_")[0].rpartition(".")
    return f"{module}{name[1:].replace('ǁ', '.')}" if "ǁ" in name else f"{module}.{name.removeprefix('x_')}"


if __name__ == "__main__":
    sys.exit(main())
