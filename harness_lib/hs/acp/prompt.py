"""Read what a client sends as a prompt as one text."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from acp import RequestError, schema

Block = (
    schema.TextContentBlock
    | schema.ImageContentBlock
    | schema.AudioContentBlock
    | schema.ResourceContentBlock
    | schema.EmbeddedResourceContentBlock
)


def text_of(blocks: Sequence[Block]) -> str:
    """Return all text blocks, links and embedded texts, in order. Raises RequestError for what is no text."""
    return "\n\n".join(text for block in blocks if (text := _text(block)).strip())


def _text(block: Block) -> str:
    if isinstance(block, schema.TextContentBlock):
        return block.text
    if isinstance(block, schema.ResourceContentBlock):
        return f"[{block.title or block.name}]({_place(block.uri)})"
    if isinstance(block, schema.EmbeddedResourceContentBlock) and isinstance(
        block.resource, schema.TextResourceContents
    ):
        return f'<resource uri="{block.resource.uri}">\n{block.resource.text}\n</resource>'
    raise RequestError(-32602, "hs reads text, links and embedded text; no images, audio or other data yet.")


def _place(uri: str) -> str:
    """Return the path of a file, which tools understand, else `uri` as it is."""
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" else uri
