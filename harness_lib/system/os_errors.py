"""Explain errors of the operating system to users."""

from __future__ import annotations

import errno
import os

_FREE = "Free some space"
_ALLOW = "Give yourself the right to read and write there"
_CLOSE = "Close some programs, or raise the limit of open files (ulimit -n)"
_END = "End some programs: there is too little memory, or there are too many processes"
_LOOK = "Another program removes files there while harness works: find out which"
# Any other operation would meet these, too.
_OF_THE_MACHINE = {
    errno.ENOSPC: _FREE,
    errno.EDQUOT: _FREE,
    errno.EROFS: "Make that file system writable",
    errno.EMFILE: _CLOSE,
    errno.ENFILE: _CLOSE,
    errno.ENOMEM: _END,
    errno.EAGAIN: _END,
    errno.EIO: "See whether the disk is sound",
}
_OF_ONE_PLACE = {errno.EACCES: _ALLOW, errno.EPERM: _ALLOW, errno.ENOENT: _LOOK, errno.ENOTDIR: _LOOK}
_CURES = {**_OF_THE_MACHINE, **_OF_ONE_PLACE}


def describe(error: OSError) -> str:
    """Return the message of the system and the file that it is about, as a sentence."""
    name = error.filename
    where = f" ({os.fsdecode(name)})" if isinstance(name, (str, bytes)) and name else ""
    return f"The system said: {error.strerror or error}{where}."


def cure(error: OSError) -> str:
    """Return what a user can do about it, as the beginning of a sentence: "Free some space"."""
    return _CURES.get(error.errno or 0, "Look at that place")


def passes(error: OSError) -> bool:
    """Return whether it may end by itself: there is no room on the disk or in memory now."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EAGAIN)


def is_of_the_machine(error: OSError) -> bool:
    """Return whether any other operation would meet it, too."""
    return error.errno in _OF_THE_MACHINE
