"""Compare how long the tests of each room take with how long they took in the last release, on this machine.

usage: python benchmarks/rooms.py

The last release is the last tag `v*`, or else the last commit called "Cut VERSION in the changelog".
It is cloned into a temporary directory; its tests and then those of this checkout run as in `bin/test`,
with the environment of this checkout.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

CHECKOUT = Path(__file__).resolve().parent.parent


def _git(*args: str) -> str:
    done = subprocess.run(["git", *args], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def last_release() -> str:
    """Return the commit of the last release; "" without one."""
    tag = _git("describe", "--tags", "--abbrev=0", "--match", "v*")
    return tag or _git("log", "-1", "--format=%H", "--grep", "^Cut .* in the changelog")


def seconds_of(checkout: Path, report: Path) -> Mapping[str, float]:
    """Run the tests of `checkout`; return the seconds of each room, all processes together."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", f"--junitxml={report}"]
    subprocess.run(command, cwd=checkout, env={**os.environ, "PYTHONPATH": str(checkout)}, check=False)
    rooms: defaultdict[str, float] = defaultdict(float)
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 (pytest wrote it)
        _, *below = case.get("classname", "").split(".")
        rooms[below[0] if len(below) > 1 else "tests"] += float(case.get("time", "0"))
    return rooms


def main() -> int:
    """Print a line for each room; fail where there is nothing to compare with."""
    argparse.ArgumentParser(
        description=__doc__, usage=argparse.SUPPRESS, formatter_class=argparse.RawTextHelpFormatter
    ).parse_args()
    release = last_release()
    if not release:
        print("No release was found to compare with: neither a tag v* nor a commit that cut one.")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder, "release")
        subprocess.run(["git", "clone", "-q", "--shared", CHECKOUT, before], check=True)
        subprocess.run(["git", "checkout", "-q", "--detach", release], cwd=before, check=True)
        then = seconds_of(before, Path(folder, "then.xml"))
    with tempfile.TemporaryDirectory() as folder:
        now = seconds_of(CHECKOUT, Path(folder, "now.xml"))
    print(f"{'room':16}{release[:10]:>12}{'now':>8}   (seconds of tests)")
    for room in sorted({*then, *now}, key=lambda room: -now[room]):
        print(f"{room:16}{then[room]:>12.0f}{now[room]:>8.0f}")
    print(f"{'all':16}{sum(then.values()):>12.0f}{sum(now.values()):>8.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
