"""Break a room in every place that mutmut knows, one at a time, and see whether a test notices.

Works on a copy of what git tracks, in `mutants/ROOM/`, and remembers in `mutants/ROOM.json` what was killed:
after new tests, or where a run was cut off, only the rest is tried again. A sample is tried anew, each mutant
with the test that killed it in the last one first.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from mutmut.mutation.file_mutation import mutate_file_contents

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.mutation import mutants
from tests.mutation.mutants import CHECKOUT, WORK, Mutant
from tests.mutation.rooms import TESTS

_PYTEST = [
    *("-q", "-p", "no:xdist", "-p", "no:cacheprovider"),
    *("-p", "no:unraisableexception", "--hypothesis-profile=mutation"),
    # Nobody reads why a test fails.
    *("--assert=plain", "--tb=line"),
    *("-o", "addopts=--import-mode=importlib", "-o", "timeout=300"),
]

# A sample is small: what the tests of each of its mutants may take of the processor.
SAMPLE_SECONDS = "50"


def main(argv: list[str]) -> int:
    """Try the rooms that are named, all of them if none is."""
    typed = mutants.options(argv)
    for room in typed.rooms:
        place = WORK / room
        _copy(place, room)
        made = [each for file in _modules(place, room) for each in mutants.of(file, _module(place, file))]
        memory = mutants.memory(room, typed)
        env = {**os.environ, "MUTANTS": str(memory), "MUTANT_UNDER_TEST": "stats"}
        if typed.sample is None:
            dead = {_key(each) for each in mutants.known(memory) if each.fate == "killed"}
            made = [_again(each, dead) for each in mutants.named(made)]
        else:
            killers = {each.key: each.killer for each in mutants.known(memory)}
            made = mutants.sample(made, typed.sample, typed.seed)
            made = [replace(each, killer=killers.get(each.key, "")) for each in made]
            env.setdefault("MUTANT_SECONDS", SAMPLE_SECONDS)
        mutants.remember(memory, made)
        command = [sys.executable, "-m", "pytest", "-ptests.mutation.trying", *_PYTEST, *TESTS[room]]
        with memory.with_suffix(".log").open("w") as log:
            subprocess.run(command, cwd=place, env=env, stdout=log, check=True)
    return 0


def _again(mutant: Mutant, dead: set[tuple[str, str]]) -> Mutant:
    return replace(mutant, fate="killed") if _key(mutant) in dead else mutant


def _key(mutant: Mutant) -> tuple[str, str]:
    """Return by what a mutant is known again, in a module of another name too."""
    return mutant.name.rpartition(".")[2], mutant.body


def _copy(place: Path, room: str) -> None:
    """Bring the copy up to date, its room broken, without touching what has not changed."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, check=True).stdout
    names = [name for name in tracked.decode().split("\0") if name and (CHECKOUT / name).is_file()]
    for file in place.rglob("*.py"):
        if os.fspath(file.relative_to(place)) not in names:
            # Moved or removed since: it would be broken and collected still.
            file.unlink()
    for name in names:
        source, target = CHECKOUT / name, place / name
        data = source.read_bytes()
        if Path(name).is_relative_to(Path("harness_lib", room)) and name.endswith(".py"):
            _break(target, data)
        elif not (target.is_file() and target.read_bytes() == data):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            shutil.copy(source, target, follow_symlinks=False)


def _break(target: Path, source: bytes) -> None:
    """Write the module `target` with all its mutants, unless that was made of this `source` already."""
    whole = target.with_suffix(".whole")
    if not (whole.is_file() and whole.read_bytes() == source):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(mutate_file_contents(str(target), source.decode()).code)
        whole.write_bytes(source)


def _modules(place: Path, room: str) -> list[Path]:
    return sorted((place / "harness_lib" / room).rglob("*.py"))


def _module(place: Path, file: Path) -> str:
    return ".".join(file.relative_to(place).with_suffix("").parts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
