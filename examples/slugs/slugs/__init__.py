"""Make names for addresses from titles."""

import re


def slug(title: str) -> str:
    """Return `title` in lower case, with one dash in place of all that is neither letter nor digit."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
