"""A second kind of check is three files: its own, the function that makes checks, and the record of a task.

It is put into a copy of the library, which then runs it from the command line.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# A check that asks whether a file is there: it runs no command, so there is none to trust.
OWN = """
from typing import NamedTuple
from harness_lib import sha256
from harness_lib.checks import Checked

class FileCheck(NamedTuple):
    file: str
    cwd = None
    is_given = True

    @property
    def text(self):
        return "there is " + self.file

    def fingerprint(self):
        return "sha256:" + sha256.digest(self.text.encode())

    def commands(self):
        return ()

    def run(self, worktree):
        if (worktree.top / self.file).exists():
            return Checked("pass", "The file is there.", "", worktree.log)
        return Checked("TEST_FAIL", "The file is not there.", "", worktree.log)
"""
FIELD = """
    file: Annotated[
        str | None,
        About(PATH, "Done when it is there.", typed=Typed("--file", "FILE", "the file", words=("file",))),
    ] = None
"""
BRANCH = """    from harness_lib.checks.there import FileCheck
    asked = task.validation
    if asked.file:
        return FileCheck(asked.file)
"""
EDITS = {
    "checks/__init__.py": (
        "    asked = task.validation\n    return",
        f"{BRANCH}    return",
    ),
    "records/task.py": ("\n    protect: Annotated[", f"{FIELD}    protect: Annotated["),
}
FILES = ["checks/__init__.py", "checks/there.py", "records/task.py"]


@pytest.fixture
def second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the copy with the second kind, which `harness` runs from now on."""
    top = tmp_path / "copy"
    skipped = shutil.ignore_patterns("__pycache__", ".git", ".venv", "tests", ".*_cache")
    shutil.copytree(ROOT, top, ignore=skipped, symlinks=True)
    library = top / "harness_lib"
    (library / "checks/there.py").write_text(OWN)
    for name, (old, new) in EDITS.items():
        text = (library / name).read_text()
        assert old in text, f"{name} has no {old!r} any more"
        (library / name).write_text(text.replace(old, new, 1))
    monkeypatch.setenv("PYTHONPATH", str(top))
    subprocess.run([sys.executable, "-m", "docs.fields"], cwd=top, check=True, env={**os.environ})
    return top


@pytest.mark.release
def test_a_second_kind_is_three_files_and_works_from_add_to_finish(second: Path, repo: Path) -> None:
    def typed(*argv: str) -> tuple[int, str]:
        # Processes of its own: those that are forked have this checkout's library, not the copy.
        command = [sys.executable, "-m", "harness_lib", *argv]
        done = subprocess.run(command, cwd=repo, capture_output=True, text=True, input="", check=False)
        return done.returncode, done.stdout + done.stderr

    changed = [
        path.relative_to(second / "harness_lib").as_posix()
        for path in sorted((second / "harness_lib").rglob("*.py"))
        if not (ROOT / path.relative_to(second)).exists()
        or path.read_bytes() != (ROOT / path.relative_to(second)).read_bytes()
    ]
    assert changed == FILES

    assert typed("init")[0] == 0
    code, said = typed("add", "write it", "--file", "made.txt")
    assert code == 0, said
    assert "no check" not in said
    # Nothing is run by a shell, so nothing is there to be read before it is trusted.
    assert "commands of this list" not in typed("check")[1]
    assert typed("start")[0] == 0
    assert typed("claim", "task-001")[0] in (0, 2)
    assert "there is made.txt" in typed("show", "task-001")[1]
    code, said = typed("validate", "task-001")
    assert (code, "The file is not there." in said) == (1, True), said

    (repo / "made.txt").write_text("made\n")
    code, said = typed("finish", "task-001")
    assert code == 0, said
    listed = json.loads((repo / "harness-tasks.json").read_text())["tasks"][0]
    assert listed["status"] == "completed"
    assert typed("check")[0] == 0


def test_the_page_for_contributors_names_these_files() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    sentence = next(line for line in page.splitlines() if line.startswith("A second kind of check is "))

    assert "three files" in sentence
    assert re.findall(r"`harness_lib/([a-z_/]+\.py)`", sentence) == ["checks/__init__.py", "records/task.py"]
