"""Measure what harness promises of its speed and print each row of a Markdown table as soon as it is known.

    python benchmarks/run.py [--quick] [--only ROW …] [--write PAGE] [--list]

Ends with 1 if a bar is missed. `--only` takes a part of a row's words or the name of a measurement.
`--write` puts the rows into the table of a page of Markdown: in the place of those of the same words, or,
without `--only`, of all.
`--quick`: fewer rounds and smaller crowds, to see that everything runs; its numbers are rough.
How to read the table: README.md beside this file.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import projects, table
from benchmarks.measurements import ALL, Measurement, Place
from benchmarks.measuring import HEAD, Row


def main() -> int:
    """Print the table; return 1 if a bar is missed."""
    options = _options()
    wanted = [each for each in ALL if not options.only or any(map(each.is_meant, options.only))]
    if options.list or not wanted:
        print("\n".join(f"{each.name:<12} {each.seconds:>4} s  {each.about}" for each in ALL))
        return 0 if options.list else 2
    # nono names each file beside a home: in /tmp there may be thousands, beside the home of a user are few.
    around = os.environ.get("TMPDIR", "/var/tmp")  # noqa: S108 (a new directory is made there)
    with tempfile.TemporaryDirectory(prefix="harness-bench-", dir=around) as name:
        projects.settle_in(Path(name))
        with Place(Path(name), quick=options.quick) as place:
            rows = _measured(wanted, place)
    if options.write:
        page = options.write.read_text(encoding="utf-8")
        options.write.write_text(table.renewed(page, rows, whole=not options.only), encoding="utf-8")
    return int(any(row.met is False for row in rows))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure what harness promises of its speed.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller crowds")
    parser.add_argument("--only", metavar="ROW", action="append", help="what stands in a row, or a name")
    parser.add_argument("--write", metavar="PAGE", type=Path, help="renew the table there, docs/speed.md say")
    parser.add_argument("--list", action="store_true", help="name the measurements, measure nothing")
    return parser.parse_args()


def _measured(wanted: Sequence[Measurement], place: Place) -> list[Row]:
    print("\n".join(HEAD), flush=True)
    rows, began, expected = [], time.monotonic(), 0.0
    for number, each in enumerate(wanted, 1):
        ahead = sum(later.seconds for later in wanted[number - 1 :])
        # This machine is as much slower or faster than the one of the estimates as it was so far.
        pace = (time.monotonic() - began) / expected if expected else 1.0
        say(f"{number} of {len(wanted)}, about {ahead * pace / 60:.1f} minutes left: {each.about}")
        for row in each.rows(place):
            print(row, flush=True)
            rows.append(row)
        expected += each.seconds
    return rows


def say(what: str) -> None:
    """Tell whoever waits what is being done."""
    print(f"measuring {what} …", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
