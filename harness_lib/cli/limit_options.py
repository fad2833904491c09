"""The limits of a run and of a task, as they are typed with `run` and with `budget`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

LIMITS = (
    ("--max-cost", "USD", float, "end the run when agents have cost this much"),
    ("--max-tokens", "N", int, "end the run when agents have used this many tokens"),
    ("--max-hours", "H", float, "end the run after this long"),
    ("--max-tasks", "N", int, "end the run after this many finished attempts"),
    ("--task-cost", "USD", float, "end an attempt that costs this much"),
    ("--task-tokens", "N", int, "end an attempt that uses this many tokens"),
    ("--task-hours", "H", float, "end an attempt that takes this long"),
)


def add(parser: ArgumentParser) -> None:
    """Add the limits; 0 is no limit."""
    for flag, metavar, kind, words in LIMITS:
        parser.add_argument(flag, metavar=metavar, type=kind, help=f"{words} (0: no limit)")


def typed(args: Namespace) -> dict[str, float]:
    """Return the limits that were typed."""
    names = [flag.removeprefix("--").replace("-", "_") for flag, *_ in LIMITS]
    return {name: value for name in names if (value := getattr(args, name)) is not None}
