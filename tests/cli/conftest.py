"""Every verb with its example, projects to type them in, and the contract that every answer keeps.

The verbs are taken from the table of the parser, and what is typed from their own examples: a new verb
is held to the contract the day it is added.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness_lib.cli import parser
from harness_lib.state import schema
from tests.conftest import FOREIGN_PREFIXES, GIT_CONFIG
from tests.run_to_end import Said
from tests.verbs import project as projects
from tests.verbs.conftest import asked_once
from tests.verbs.project import Project

__all__ = ["asked_once"]

NAMES = parser.known()
EXAMPLES = {name: shlex.split(parser.load(name).EXAMPLE)[1:] for name in NAMES}
# It makes a project of its own and works it off; its own test does that.
LONG = {"demo"}
TYPED = {name: words for name, words in EXAMPLES.items() if name not in LONG}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a directory for what tests share, with the house rules of a single test around it."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(FOREIGN_PREFIXES)]:
            patch.delenv(name)
        patch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path_factory.mktemp("config") / "gitconfig"))
        Path(os.environ["GIT_CONFIG_GLOBAL"]).write_text(GIT_CONFIG)
        yield tmp_path_factory.mktemp("places").resolve()


@pytest.fixture(scope="module")
def kept(places: Path) -> Path:
    """Return a copy of a project that has stood beside it, as `filled`."""
    filled_project(places / "filled").close()
    (places / "filled").rename(places / "kept")
    return places / "kept"


@pytest.fixture
def filled(kept: Path) -> Iterator[Project]:
    """Make a project with the three tasks that the examples speak of; where it lies, its list is trusted."""
    made = Project(kept.with_name("filled"))
    shutil.copytree(kept, made.top, symlinks=True)
    yield made
    made.close()
    shutil.rmtree(made.top)


def filled_project(top: Path) -> Project:
    made = projects.make(top)
    for number in range(3):
        made.agents[0].ok("add", f"Task {number}", "--validate", f"test {number}")
    return made


def keeps_the_contract(said: Said) -> dict[str, Any]:
    """Return the reply, which is all of stdout and fits the schema and the exit code."""
    assert schema.problems(said.json, "reply") == []
    assert said.json["exit"] == said.code
    assert said.json["ok"] == (said.code == 0)
    assert "Traceback" not in said.err
    return said.json
