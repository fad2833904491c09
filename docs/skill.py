"""Write `skills/harness`: what an installed skill needs of this repository, and nothing else of it.

Run: python -m docs.skill, after a file of `harness_lib` has come, gone or moved; a test compares.

`skills add` copies the whole folder of a SKILL.md but for `.git` and `__pycache__`, and reads no ignore file.
It follows links to files; of a linked folder it would copy `__pycache__`, too. So folders are real, and
files are links. The page is a copy: the one at the top is internal, so that `skills add` passes it over.
What Codex reads of a plugin is not there: opencode would take the pointer in it for the page.
"""

from __future__ import annotations

import os
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
FOLDER = CHECKOUT / "skills" / "harness"
WHOLE = (".claude-plugin", "harness_lib", "hooks", "references", "schemas")
FILES = ("LICENSE", "bin/harness", "bin/hs", "bin/start.py")
INTERNAL = "metadata:\n  internal: true\n"


def files() -> dict[str, str]:
    """Return the files of the skill but for its page, each with where its link leads."""
    paths = [path for name in WHOLE for path in (CHECKOUT / name).rglob("*") if path.is_file()]
    names = [str(path.relative_to(CHECKOUT)) for path in paths if "__pycache__" not in path.parts]
    return {name: os.path.relpath(CHECKOUT / name, (FOLDER / name).parent) for name in (*names, *FILES)}


def page() -> str:
    """Return the page as `skills add` is to find it."""
    return (CHECKOUT / "SKILL.md").read_text(encoding="utf-8").replace(INTERNAL, "", 1)


def links() -> dict[str, str]:
    """Return the links that are there, each with where it leads."""
    paths = (path for path in FOLDER.rglob("*") if path.is_symlink())
    return {str(path.relative_to(FOLDER)): str(path.readlink()) for path in paths}


def main() -> None:
    """Make the folder what it has to be."""
    wanted, there = files(), links()
    for name in there.keys() - wanted.keys():
        (FOLDER / name).unlink()
    for name in wanted.keys() - there.keys():
        (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / name).symlink_to(wanted[name])
    (FOLDER / "SKILL.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
