"""The SHA-256 that hashlib hands out, without loading the whole of OpenSSL first: every verb would wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import sha256
else:
    try:
        from _sha2 import sha256  # Python 3.12 and newer
    except ImportError:
        try:
            from _sha256 import sha256
        except ImportError:
            from hashlib import sha256


def digest(data: bytes) -> str:
    """Return the digest of `data` in hexadecimal digits."""
    return sha256(data).hexdigest()
