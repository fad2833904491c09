"""Files of `key=value` lines: settings, provider variants, sessions."""

from __future__ import annotations

from pathlib import Path


def read(path: Path) -> dict[str, str]:
    """Return the values in the file `path`; none if it cannot be read. The first of equal keys counts."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return parse(text)


def parse(text: str) -> dict[str, str]:
    """Return the values in `text`; lines without `=`, and those that begin with `#`, say nothing."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        key, separator, value = line.partition("=")
        if separator and not line.startswith("#"):
            values.setdefault(key.strip(), value.strip())
    return values


def render(values: dict[str, str]) -> str:
    """Return `values` as lines; a line break in a value would be another key, so it becomes a space."""
    return "".join(f"{key}={' '.join(value.splitlines())}\n" for key, value in values.items())
