"""Run a program of ours, and say on standard error in which files of harness_lib it works, in order.

A file is named whenever a function of it is called from another one.

Run: python called.py hooks/harness-stop.py, or python called.py harness finish
"""

from __future__ import annotations

import inspect
import os
import runpy
import sys
from types import FrameType
from typing import Any

MARK = "called: "
ROOM = f"{os.sep}harness_lib{os.sep}"


def main() -> None:
    seen: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        # What a module or a class does while it is loaded is no work.
        if event == "call" and ROOM in code.co_filename and code.co_flags & inspect.CO_OPTIMIZED:
            name = code.co_filename.rpartition(ROOM)[2]
            if code.co_name[0] != "<" and seen[-1:] != [name] and not _loading(frame):
                seen.append(name)

    program, *words = sys.argv[1:]
    sys.argv = [program, *words]
    sys.setprofile(note)
    try:
        if program == "harness":
            from harness_lib.cli.main import main as typed  # noqa: PLC0415 - what it loads is to be seen

            typed(words)
        else:
            runpy.run_path(program, run_name="__main__")
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
        for name in seen:
            sys.stderr.write(f"{MARK}{name}\n")


def _loading(frame: FrameType) -> bool:
    """Say whether a file of ours is being loaded by the one that is called."""
    caller = frame.f_back
    while caller is not None and ROOM not in caller.f_code.co_filename:
        caller = caller.f_back
    return caller is not None and not caller.f_code.co_flags & inspect.CO_OPTIMIZED


if __name__ == "__main__":
    main()
