"""Say how many mutants of each room the tests have killed, and which survive without a reason.

Reads what `run.py` has left in `mutants/`, and the reasons in `survivors.json`.
Exit 1: a room is below the bar, or a survivor has no reason.
`--new`: show the survivors without one, as they would stand in `survivors.json`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.mutation import mutants
from tests.mutation.survivors import Reasons

BAR = 0.9


def main(argv: list[str]) -> int:
    """Print a line for each room that was tried."""
    reasons = Reasons.read()
    new: dict[str, list[dict[str, str]]] = {}
    low = False
    for room in mutants.ROOMS:
        tried = [each for each in mutants.known(mutants.WORK / f"{room}.json") if each.fate]
        if not tried:
            continue
        survived = [each for each in tried if each.fate == "survived"]
        unexplained = [each for each in survived if not reasons.why(each)]
        for each in unexplained:
            new.setdefault(each.function, []).append({"was": each.was, "became": each.became, "why": ""})
        n = Counter(each.fate for each in tried)
        low = low or n["killed"] / len(tried) < BAR
        explained = f"{len(survived) - len(unexplained)} survived with a reason, {len(unexplained)} without"
        killed = f"{n['killed']} killed ({n['killed'] / len(tried):.1%})"
        print(f"{room}: {len(tried)} tried, {killed}, {n['timed out']} did not end, {explained}")
    if "--new" in argv:
        print(json.dumps(new, indent=2, ensure_ascii=False))
    return 1 if low or new else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
