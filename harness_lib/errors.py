"""The ways to fail, each defined by what the caller should do about it.

A failed check, a timeout and "nothing left to do" are results, not errors: see `harness_lib.core.context`.
An error carries facts; the sentence is finished where it is printed (`harness_lib.cli`). The functions at the
end explain errors of the operating system to users.
"""

from __future__ import annotations

import errno
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of every verb; docs/commands.md has the table, and a test compares them."""

    DONE = 0
    CHECK_FAILED = 1
    USAGE = 2
    CONFIG = 3
    STATE_UNREADABLE = 4
    HELD = 5
    LEASE_LOST = 6
    ENV_SETUP = 7
    REFUSED = 8
    STOP = 9
    BUG = 70


class HarnessError(Exception):
    """An expected failure: `kind` names it, `hint` says what to do next."""

    kind = "BUG"
    exit_code = Exit.BUG

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        # Keys of the verb's own in its JSON object.
        self.extra: dict[str, object] = {}

    def __str__(self) -> str:
        return self.message


class UsageError(HarnessError):
    """The command is wrong: fix its arguments."""

    kind = "USAGE"
    exit_code = Exit.USAGE


class ConfigError(HarnessError):
    """The user must edit the named field of a file."""

    kind = "CONFIG"
    exit_code = Exit.CONFIG


class NoPlaceError(ConfigError):
    """The directory of a check is not there: the attempt may still have to make it."""


class StateUnreadableError(HarnessError):
    """The state cannot be read and nothing good is left to restore it from."""

    kind = "STATE_UNREADABLE"
    exit_code = Exit.STATE_UNREADABLE


class HeldError(HarnessError):
    """Another session or process holds it: wait or leave."""

    kind = "HELD"
    exit_code = Exit.HELD


class BusyError(HeldError):
    """Others change the list in this moment: the same works a little later, so it counts as no try."""


class LeaseLostError(HarnessError):
    """Another worker has the claim now: drop this work."""

    kind = "LEASE_LOST"
    exit_code = Exit.LEASE_LOST


class EnvSetupError(HarnessError):
    """The machine lacks something: fix the machine."""

    kind = "ENV_SETUP"
    exit_code = Exit.ENV_SETUP


class AwayError(EnvSetupError):
    """Something that harness works with is away now, or full; that may end by itself, so a run waits for it.

    Such are the database of the list, the remote, and the disk. No task is to blame.
    """


class RemoteAwayError(HeldError, AwayError):
    """The remote does not answer, or has no room, now."""


class LocalBusyError(BusyError, AwayError):
    """Another command of this machine has been changing a list in a database for long: it may be away."""


class NotPushedError(EnvSetupError):
    """The branch, which the machines of a list in a database share, is on no remote."""


class NotAllowedError(EnvSetupError):
    """The database of the list does not let this user do that."""


class GoneError(EnvSetupError):
    """The directory of the project, or its git directory, is no longer where it was."""

    def __init__(self, place: object) -> None:
        super().__init__(
            f"{place} is gone: it was moved or removed.",
            "Put it back where it was, or go on where it is now.",
        )


class NoRepositoryError(EnvSetupError):
    """No git repository is around the place, so one can be made there."""


class RefusedError(HarnessError):
    """It would lose work that no task made, or run what nobody trusted."""

    kind = "REFUSED"
    exit_code = Exit.REFUSED


class CheckEditedError(HarnessError):
    """The user has edited a check while it ran, so its result counts for nothing: the new one must run."""

    kind = "REFUSED"
    exit_code = Exit.REFUSED


class UntrustedError(RefusedError):
    """A list that machines share was not trusted on this one: no task is to blame, and none can run here."""


class UntrustedTaskError(UntrustedError):
    """The commands of one task were not trusted on this machine; other tasks can go on."""


_FREE = "Free some space"
_ALLOW = "Give yourself permission to read and write there"
_CLOSE = "Close some programs, or raise the limit of open files (ulimit -n)"
_END = "End some programs: there is too little memory, or there are too many processes"
_MOVE = "Move away the file that stands where a directory has to be"
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
_OF_ONE_PLACE = {errno.EACCES: _ALLOW, errno.EPERM: _ALLOW, errno.ENOENT: _LOOK, errno.ENOTDIR: _MOVE}


def describe(error: OSError) -> str:
    """Return the message of the system and the file that it is about, as a sentence."""
    name = error.filename
    if isinstance(name, bytes):
        name = name.decode("utf-8", "surrogateescape")
    where = f" ({name})" if isinstance(name, str) and name else ""
    return f"The system said: {error.strerror or error}{where}."


def cure(error: OSError) -> str:
    """Return what a user can do about it, as the beginning of a sentence: "Free some space"."""
    return {**_OF_THE_MACHINE, **_OF_ONE_PLACE}.get(error.errno or 0, "Look at that place")


def passes(error: OSError) -> bool:
    """Return whether it may end by itself: there is no room on the disk or in memory now."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EAGAIN)


def is_of_the_machine(error: OSError) -> bool:
    """Return whether any other operation would meet it, too."""
    return error.errno in _OF_THE_MACHINE
