"""The prompt caches of the real hosts: what of a request they know from one before, counted in tokens.

Both know beginnings only, by a chain of hashes over the blocks of a request, and none below 1,024 tokens.
"""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

LEAST = 1024
LOOKED_BACK = 20
MARKS = 4


@dataclass(frozen=True)
class Count:
    """Tokens of a request: all of them, those read from the cache, those written into it."""

    tokens: int
    read: int = 0
    written: int = 0


@dataclass
class PromptCache:
    """What a host remembers. A token is four characters."""

    known: set[str] = field(default_factory=set)
    counts: list[Count] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def anthropic(self, body: Json) -> Count:
        """Count a request that is read and written at its marks, looking a few blocks back from each."""
        blocks = [*body.get("tools", []), *_texts(body.get("system") or [])]
        blocks += [
            {"role": said["role"], **block} for said in body["messages"] for block in _texts(said["content"])
        ]
        marks = [place for place, block in enumerate(blocks) if "cache_control" in block]
        assert len(marks) <= MARKS, "a maximum of 4 blocks with cache_control may be provided"
        chain, sizes = _chain([{k: v for k, v in block.items() if k != "cache_control"} for block in blocks])
        with self._lock:
            near = [place for mark in marks for place in range(max(0, mark - LOOKED_BACK), mark + 1)]
            read = max((sizes[place] for place in near if chain[place] in self.known), default=0)
            lasting = [mark for mark in marks if sizes[mark] >= LEAST]
            self.known |= {chain[mark] for mark in lasting}
            written = max([sizes[mark] for mark in lasting], default=read) - read
            return self._counted(Count(sizes[-1], read, max(0, written)))

    def openai(self, body: Json) -> Count:
        """Count a request whose beginning is known by itself, in steps of 128 tokens, for the same key."""
        system = body.get("instructions") or ""
        blocks = [*body.get("tools", []), system, *(body.get("input") or body.get("messages") or [])]
        chain, sizes = _chain([str(body.get("prompt_cache_key")), *blocks])
        with self._lock:
            read = max(
                (size for link, size in zip(chain, sizes, strict=True) if link in self.known), default=0
            )
            self.known |= set(chain)
            return self._counted(Count(sizes[-1], read // 128 * 128 if read >= LEAST else 0))

    def _counted(self, count: Count) -> Count:
        self.counts.append(count)
        return count


def _texts(content: str | list[Json]) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _chain(blocks: list[Any]) -> tuple[list[str], list[int]]:
    """Return for each block the hash of all up to it, and their size."""
    link, size = b"", 0
    chain, sizes = [], []
    for block in blocks:
        data = json.dumps(block).encode()
        link = hashlib.sha256(link + data).digest()
        size += len(data) // 4
        chain.append(link.hex())
        sizes.append(size)
    return chain, sizes
