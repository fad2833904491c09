"""A clone in which whatever harness, git or a check may read was made to be run or believed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.system.git.gitrepo import sh
from tests.verbs.project import Project


def clone_of(origin: Project, files: Mapping[str, str]) -> Path:
    """Return a clone beside `origin`: it has `files`, and programs that leave a file PWNED beside it."""
    place = origin.top.parent
    pwn = f"touch {place}/PWNED"
    module, program = f"import os; os.system({pwn!r})\n", f"#!/bin/sh\n{pwn}\n"
    traps = {"conftest.py": module, "sitecustomize.py": module, "git": program, "python3": program}
    attributes = {".gitattributes": "* filter=evil diff=evil merge=evil\n"}
    for name, text in {**files, **traps, **attributes}.items():
        origin.put(name, text, executable=text.startswith("#!"))
    origin.git("add", "-A", "--force")
    origin.commit_only("A trap")
    sh(place, "clone", "-q", str(origin.top), "clone")
    origin.close()
    return place / "clone"
