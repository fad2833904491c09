"""An error of the system is told with what helps against it, and only what was meant."""

from __future__ import annotations

import errno
import os

import pytest

from harness_lib.system import os_errors

EVERY = sorted(errno.errorcode)


def error(number: int, path: object = None) -> OSError:
    return OSError(number, os.strerror(number), path)


@pytest.mark.parametrize("number", EVERY, ids=errno.errorcode.get)
def test_space_is_wanted_only_where_there_is_none(number: int) -> None:
    assert ("space" in os_errors.cure(error(number))) == (number in (errno.ENOSPC, errno.EDQUOT))


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EACCES, errno.ELOOP])
def test_what_is_wrong_in_one_place_is_not_the_machine_s(number: int) -> None:
    assert not os_errors.is_of_the_machine(error(number))
    assert os_errors.is_of_the_machine(error(errno.ENOSPC))


def test_the_file_is_named_where_there_is_one() -> None:
    assert os_errors.describe(error(errno.ENOENT)) == "The system said: No such file or directory."
    for path in ("/a/file", b"/a/file"):
        assert os_errors.describe(error(errno.ENOENT, path)).endswith("directory (/a/file).")
    assert os_errors.describe(OSError("odd")) == "The system said: odd."


def test_what_is_gone_is_not_called_full() -> None:
    assert "removes files" in os_errors.cure(error(errno.ENOENT))
    assert "right to" in os_errors.cure(error(errno.EACCES))
