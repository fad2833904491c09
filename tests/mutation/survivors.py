"""Why some mutants may survive: what can be broken anywhere without harm, and what in a single function."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.mutation.mutants import Mutant

FILE = Path(__file__).with_name("survivors.json")


class Reasons:
    """What stands in `survivors.json`.

    `anywhere`: patterns of a change, written `was => became`.
    `functions`: for each function its lines and what became of them; without `became`, all changes of a line.
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self.anywhere = [(re.compile(each["change"]), str(each["why"])) for each in document["anywhere"]]
        self.functions: dict[str, list[dict[str, str]]] = document["functions"]

    @classmethod
    def read(cls) -> Reasons:
        return cls(json.loads(FILE.read_bytes()))

    def why(self, mutant: Mutant) -> str | None:
        """Return why `mutant` may survive, None if nobody has said so."""
        change = f"{mutant.was} => {mutant.became}"
        general = (why for pattern, why in self.anywhere if pattern.search(change))
        entries = self.functions.get(mutant.function, [])
        special = (each["why"] for each in entries if _is_meant(each, mutant))
        return next((why for why in (*general, *special) if why), None)


def _is_meant(entry: dict[str, str], mutant: Mutant) -> bool:
    return entry["was"] == mutant.was and entry.get("became", mutant.became) == mutant.became
