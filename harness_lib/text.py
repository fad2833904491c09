"""Text for users: counts, times, names; external text is harmless: it moves no cursor and hides nothing."""

from __future__ import annotations

TYPE_CHECKING = False  # hooks load this, and `typing` takes longer than all of it
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Strings = tuple[str, ...]
# What shows that something was there and is not shown.
REPLACED = "\ufffd"
# They print nothing, but without them Persian and Hindi words and many emoji fall apart.
_JOINERS = "\u200c\u200d"
_HOUR = 3600
_WRITTEN = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Line ends beside the control characters: str.splitlines() and some editors break there; and the marks that
# reorder or hide text on a terminal.
_BREAKS = frozenset("\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")


def harmless(text: str, *, instead: str = REPLACED, keep: str = "") -> str:
    """Return `text` with every unprintable character replaced by `instead`, except those in `keep`."""
    return "".join(c if c.isprintable() or c in _JOINERS or c in keep else instead for c in text)


def in_one_line(text: str, *, instead: str = " ") -> str:
    """Return what `harmless` does, with every run of blanks and line breaks as one blank."""
    return " ".join(harmless(" ".join(text.split()), instead=instead).split())


def cut(text: str, limit: int) -> str:
    """Return `text`, cut to `limit` characters with an ellipsis as the last where it is longer."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def folded(text: str) -> str:
    """Return `text` for a comparison that ignores case and the number of blanks."""
    return " ".join(text.split()).casefold()


def some(texts: Sequence[str], most: int = 5) -> str:
    """Return the first `most` of `texts` in one line, and how many more there are."""
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def some_quoted(names: Iterable[str]) -> str:
    """Return what `some` does, with each of `names` in quotation marks."""
    return some([repr(name) for name in names])


def first(rows: Sequence[str], most: int, rest: str = "") -> list[str]:
    """Return the first `most` of `rows`, and a row that says how many more there are; `rest` ends it."""
    left = len(rows) - most
    return [*rows[:most], *([f"… and {left} more{rest}"] if left > 0 else [])]


def sentence(text: str) -> str:
    """Return `text`, perhaps of another program, with a full stop unless it ends as a sentence does."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def counted(number: int, noun: str) -> str:
    """Return `number` of what `noun` names: "1 file", "2 files"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def span(seconds: float) -> str:
    """Return a length of time as `m:ss` or `h:mm:ss`; a negative one is `0:00`."""
    whole = max(0, round(seconds))
    minutes, rest = divmod(whole, 60)
    return f"{minutes}:{rest:02}" if whole < _HOUR else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def escape(text: str) -> str:
    r"""Return `text` as one printable line: breaks and control characters become `\n`, `\x1b`, `\u2028` …."""
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(char: str) -> str:
    code = ord(char)
    if char in _WRITTEN:
        return _WRITTEN[char]
    if code < 0x20 or 0x7F <= code < 0xA0:  # noqa: PLR2004 (the two blocks of control characters)
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if char in _BREAKS else char


def closest(word: str, names: Iterable[str]) -> str:
    """Return the one of `names` that `word` resembles most; "" if it resembles none."""
    from difflib import get_close_matches  # noqa: PLC0415 (only who mistypes pays for it)

    return next(iter(get_close_matches(word, sorted(names), 1)), "")


def words_of(table: str) -> frozenset[str]:
    """Return the words of a table."""
    return frozenset(table.split())


def without_credentials(text: str) -> str:
    """Return `text` with no user and password in the addresses in it."""
    import re  # noqa: PLC0415 (hooks load this module, and never this)

    # A generated password may have a slash in it.
    return re.sub(r"//(?:[^/\s:@]*:\S*|[^/\s]*)@", "//", text)


def safe_name(task_id: str) -> str:
    """Return `task_id` as one harmless component of a path or a ref name."""
    return "".join(
        c if c.isascii() and (c.isalnum() or c in "_-") else f"%{c.encode().hex()}" for c in task_id
    )
