"""Say how many mutants of each room the tests have killed, and which survive without a reason.

Reads what `run.py` has left in `mutants/`, and the reasons in `survivors.json`.
Exit 1: a room is below the bar, a survivor has no reason, or one survives that was killed before.
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
    """Print a line for each room that was tried, and what was killed before and is not now."""
    typed = mutants.options(argv)
    before: dict[str, dict[str, str]] = {}
    if typed.before:
        try:
            before = mutants.fates(json.loads(typed.before.read_bytes()))
        except (OSError, TypeError, ValueError) as error:
            print(f"--before {typed.before}: {error}", file=sys.stderr)
            return 2
    reasons = Reasons.read()
    new: dict[str, list[dict[str, str]]] = {}
    fates: dict[str, dict[str, str]] = {}
    bad = False
    for room in typed.rooms:
        tried = [each for each in mutants.known(mutants.memory(room, typed)) if each.fate]
        if not tried:
            continue
        fates[room] = {each.key: each.fate for each in tried}
        survived = [each for each in tried if each.fate == "survived"]
        unexplained = [each for each in survived if not reasons.why(each)]
        for each in unexplained:
            new.setdefault(each.function, []).append({"was": each.was, "became": each.became, "why": ""})
        n = Counter(each.fate for each in tried)
        bad = bad or n["killed"] / len(tried) < BAR
        explained = f"{len(survived) - len(unexplained)} survived with a reason, {len(unexplained)} without"
        killed = f"{n['killed']} killed ({n['killed'] / len(tried):.1%})"
        print(f"{room}: {len(tried)} tried, {killed}, {n['timed out']} did not end, {explained}")
    if typed.before:
        bad = _lost(before, fates) or bad
    if typed.save:
        typed.save.write_text(json.dumps(fates, indent=2, ensure_ascii=False))
    if typed.new:
        print(json.dumps(new, indent=2, ensure_ascii=False))
    return 1 if bad or new else 0


def _lost(before: dict[str, dict[str, str]], now: dict[str, dict[str, str]]) -> bool:
    """Print what was killed before and is not now; return whether there is any."""
    lost = False
    for room, fates in now.items():
        both = {key: fate for key, fate in before.get(room, {}).items() if key in fates}
        then = sum(fate != "survived" for fate in both.values())
        still = sum(fates[key] != "survived" for key in both)
        print(f"{room}: of {len(both)} tried both times {then} did not survive before, {still} do not now")
        print(f"  {len(before.get(room, {})) - len(both)} of before stand in code that has changed")
        for key, fate in both.items():
            if fate != "survived" and fates[key] == "survived":
                lost = True
                print(f"  survives now: {key}")
    return lost


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
