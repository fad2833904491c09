"""Write what other people read of the records: run `python -m harness_lib.state.record` in a checkout."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from harness_lib.state.record import page, published

CHECKOUT = Path(__file__).resolve().parents[3]


def texts() -> Mapping[str, str]:
    """Return what is written where, below the checkout."""
    return {
        "schemas/harness-tasks.schema.json": json.dumps(published.schema(), indent=2) + "\n",
        "docs/fields.md": page.page(),
    }


def main() -> None:
    """Write every file."""
    for name, text in texts().items():
        (CHECKOUT / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
