"""An installed skill holds what it needs of the repository, and nothing else of it."""

from __future__ import annotations

import shutil
from pathlib import Path

from docs import skill
from tests.conftest import CHECKOUT
from tests.launcher.conftest import for_all, shared
from tests.launcher.launching import REAL_ENVIRON
from tests.run_to_end import run_to_end

__all__ = ["for_all", "shared"]

MOST_BYTES = 3_000_000
TO_TYPE = "type: python -m docs.skill"


def test_the_folder_is_what_is_written() -> None:
    assert skill.links() == skill.files(), TO_TYPE
    assert (skill.FOLDER / "SKILL.md").read_text() == skill.page(), TO_TYPE
    assert all(
        path.is_symlink() or path.is_dir() or path.name == "SKILL.md" for path in skill.FOLDER.rglob("*")
    )


def test_it_has_one_page() -> None:
    """Of several pages opencode lists the one that it reads last, below names that begin with a dot, too."""
    assert [*skill.FOLDER.rglob("SKILL.md")] == [skill.FOLDER / "SKILL.md"]


def test_a_copy_of_it_is_small_and_works(tmp_path: Path, shared: dict[str, str]) -> None:
    """`skills add` copies what the links lead to, whatever else lies in the clone."""
    copy = tmp_path / "harness"
    shutil.copytree(skill.FOLDER, copy)

    assert sum(path.stat().st_size for path in copy.rglob("*") if path.is_file()) < MOST_BYTES
    stated = run_to_end([copy / "bin/harness", "--version"], env={**REAL_ENVIRON, **shared}, check=True)
    assert stated.stdout.startswith("harness ")


def test_skills_add_passes_the_page_at_the_top_over() -> None:
    assert skill.INTERNAL in (CHECKOUT / "SKILL.md").read_text().split("---\n")[1]
    assert skill.INTERNAL not in skill.page()
