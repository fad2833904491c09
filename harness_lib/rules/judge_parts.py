"""Take from a project's own settings file the part that its test runner reads."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

_SECTION = re.compile(r"\s*\[+\s*([^\]]+?)\s*\]+\s*(?:#.*)?$")
_PYTHON_SECTIONS = re.compile(r"(tool[.:])?(pytest|coverage|tox|testenv|mypy|ruff|hatch|poe|unittest)\b")
_CARGO_SECTIONS = re.compile(r"(lib|test|bench|profile|patch|replace)\b")
_NODE_KEYS = ("scripts", "jest", "vitest", "mocha", "ava", "nyc", "c8", "babel", "eslintConfig", "type")


def is_partial(name: str) -> bool:
    """Return whether only a part of the file called `name` counts."""
    return name.rpartition("/")[2] in _PARTS


def part(name: str, content: bytes) -> bytes | None:
    """Return what of the file called `name` decides what a check says; None if nothing of it does."""
    reader = _PARTS.get(name.rpartition("/")[2])
    if reader is None:
        return content
    deciding = reader(content.decode("utf-8", "surrogateescape"))
    return deciding.encode("utf-8", "surrogateescape") or None


def _sections(text: str, pattern: re.Pattern[str]) -> str:
    kept, section = [], ""
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        header = _SECTION.match(line)
        if header:
            section = header[1].replace('"', "").replace("'", "")
        # In TOML a key may carry the name of its section: tool.pytest.ini_options.addopts = …
        place = section if header else f"{section}.{line.strip()}".lstrip(".")
        if pattern.match(place):
            kept.append(line.rstrip())
    return "\n".join(kept)


def _node(text: str) -> str:
    try:
        document = json.loads(text)
    except ValueError:
        return text
    if not isinstance(document, dict):
        return text
    kept = {key: document[key] for key in _NODE_KEYS if key in document}
    return json.dumps(kept, sort_keys=True) if kept else ""


def _go(text: str) -> str:
    """Leave out what the module requires: most work may add to that."""
    without_blocks = re.sub(r"(?ms)^require\s*\(.*?^\)", "", text)
    lines = (line.split("//")[0].strip() for line in without_blocks.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("require "))


_PARTS: Mapping[str, Callable[[str], str]] = MappingProxyType(
    {
        "pyproject.toml": lambda text: _sections(text, _PYTHON_SECTIONS),
        "setup.cfg": lambda text: _sections(text, _PYTHON_SECTIONS),
        "tox.ini": lambda text: _sections(text, _PYTHON_SECTIONS),
        "Cargo.toml": lambda text: _sections(text, _CARGO_SECTIONS),
        "package.json": _node,
        "go.mod": _go,
    }
)
