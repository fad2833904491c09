"""A Python and a C project whose check needs what git ignores: that is named, and no task is red."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from harness_lib.attempts import recheck
from tests.attempts.rechecking import context, found
from tests.conftest import for_release
from tests.verbs.project import Agent, Project

PYTHON = f"{shlex.quote(sys.executable)} -B"


class Language(NamedTuple):
    """A project whose check needs something that is built first, into `built`, which git ignores."""

    needs: str
    ignored: str
    files: Mapping[str, str]
    build: str
    check: str
    built: str
    source: str


LANGUAGES = {
    "python": Language(
        "python3",
        "_version.py\n__pycache__/\n",
        {
            "app.py": "from _version import VERSION\n\n\ndef name():\n    return f'app {VERSION}'\n",
            "test_app.py": "import app\n\nassert app.name() == 'app 1', app.name()\n",
        },
        "echo 'VERSION = 1' > _version.py",
        f"{PYTHON} test_app.py",
        "_version.py",
        "app.py",
    ),
    "c": Language(
        "gcc",
        "build/\n",
        {
            "app.c": "int name(void) { return 1; }\n",
            "test.c": "int name(void);\nint main(void) { return name() != 1; }\n",
        },
        "mkdir -p build && gcc -c app.c -o build/app.o",
        "gcc -c app.c -o /dev/null && gcc test.c build/app.o -o test.out && ./test.out; "
        "e=$?; rm -f test.out; grep -q 'return 1' app.c && exit $e",
        "build/",
        "app.c",
    ),
}


@pytest.fixture(params=["python", *for_release("c")])
def language(request: pytest.FixtureRequest) -> Language:
    chosen = LANGUAGES[request.param]
    if shutil.which(chosen.needs) is None:
        pytest.skip(f"{chosen.needs} is not here")
    return chosen


def built(project: Project, agent: Agent, language: Language) -> None:
    """Let an agent finish the task in `project`, where it has built what the check needs."""
    project.commit("Ignore what is built", files={".gitignore": language.ignored})
    agent.ok("edit", "--no-final-check")
    agent.ok("add", "One", "--validate", language.check)
    agent.ok("trust", "--yes", HARNESS_TRUST="1")
    agent.ok("claim")
    for name, text in language.files.items():
        project.put(name, text)
    subprocess.run(["sh", "-c", language.build], cwd=project.top, check=True)
    agent.ok("finish")


def looked_at(project: Project, tmp_path: Path) -> recheck.Found:
    (only,) = found(context(project, tmp_path / "home"))
    return only


def test_what_was_built_by_hand_is_named_and_makes_nothing_red(
    project: Project, agent: Agent, tmp_path: Path, language: Language
) -> None:
    built(project, agent, language)

    seen = looked_at(project, tmp_path).recheck

    assert (seen.passed, seen.excuse, seen.missing) == (False, "not_reproducible", (language.built,))
    said = agent.ok("status")["message"]
    assert "not reproducible: task-001: " in said
    assert f"only there are: {language.built}. Let harness-init.sh make what is missing" in said
    assert "100 %" in said
    agent.ok("check")
    assert agent.fails(9, "start")["stop"] == {"reason": "done"}
    assert not project.enable_flag


@pytest.mark.release
def test_with_either_way_out_the_check_passes_on_a_clean_checkout(
    project: Project, agent: Agent, tmp_path: Path, language: Language
) -> None:
    built(project, agent, language)
    assert not looked_at(project, tmp_path).recheck.passed

    project.put(".worktreeinclude", f"{language.built}\n")
    assert looked_at(project, tmp_path).recheck.passed
    (project.top / ".worktreeinclude").unlink()
    project.commit("by hand", files={"tracked.txt": "other content\n"})
    assert not looked_at(project, tmp_path).recheck.passed
    project.put("harness-init.sh", f"{language.build}\n")
    agent.ok("trust", "--yes", HARNESS_TRUST="1")
    assert looked_at(project, tmp_path).recheck.passed


def test_what_is_broken_is_red_whatever_was_built(
    project: Project, agent: Agent, tmp_path: Path, language: Language
) -> None:
    project.put("harness-init.sh", f"{language.build} || true\n")
    built(project, agent, language)
    assert looked_at(project, tmp_path).recheck.passed

    text = project.read(language.source)
    project.put(language.source, text.replace("1", "2").replace("app ", "lib "))
    commit = project.commit("break it")

    seen = looked_at(project, tmp_path).recheck
    assert (seen.passed, seen.excuse, seen.commit) == (False, None, commit)
