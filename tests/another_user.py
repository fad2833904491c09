"""What another user is told, in a fork of ours: this interpreter may lie where nobody else may look."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from typing import Any

import pytest

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def told(ask: Callable[[], Any], uid: int = NOBODY) -> Any:
    """Return what `ask` returns, by way of JSON; what it needs must have been imported here."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Python 3.12 warns where there are other threads (those of pytest-xdist): ours needs none of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            os.write(writing, json.dumps(ask()).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        answer = stream.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    return json.loads(answer)
