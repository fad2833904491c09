"""The guard of `conftest.py` keeps tests away from the developer's home, repositories and agent session."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from tests import lasting
from tests.conftest import CHECKOUT, Harness, MakeRepo
from tests.run_to_end import run_to_end
from tests.system.git.gitrepo import put, sh


def probed(place: Path, probe: str, *options: str, **env: str) -> str:
    """Return what pytest says of a test that is run below a copy of our conftest."""
    shutil.copy(CHECKOUT / "tests/conftest.py", place)
    put(place / "pytest.ini", "[pytest]\nmarkers = release\n")
    put(place / "test_probe.py", probe)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(place)]
    return run_to_end(command, env={**os.environ, **env}).stdout


def test_home_is_a_new_directory_with_nothing_but_a_git_config(home: Path) -> None:
    assert Path.home() == home
    assert [entry.name for entry in home.iterdir()] == [".gitconfig"]


def test_the_working_directory_is_the_tests_own_and_no_repository(tmp_path: Path) -> None:
    assert Path.cwd() == tmp_path.resolve()
    assert sh(tmp_path, "rev-parse", "--git-dir", check=False) == ""


def test_what_all_tests_use_is_in_the_directory_of_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert tmp_path not in lasting.directory().parents


def test_a_repository_above_the_tests_directory_is_not_found(tmp_path: Path) -> None:
    """As happens when the temporary directory lies in somebody's checkout."""
    above = tmp_path.parent / "above"
    inside = above / "inside"
    inside.mkdir(parents=True)
    sh(tmp_path, "init", "-q", str(above))
    env = {"GIT_CEILING_DIRECTORIES": str(above.resolve())}
    assert sh(inside, "rev-parse", "--git-dir", env=env, check=False) == ""
    ceiling = Path(os.environ["GIT_CEILING_DIRECTORIES"])
    assert ceiling in tmp_path.resolve().parents


def test_git_reads_only_the_tests_own_configuration(tmp_path: Path, home: Path) -> None:
    origins = {line.split("\t")[0] for line in sh(tmp_path, "config", "--list", "--show-origin").splitlines()}
    assert origins == {f"file:{home / '.gitconfig'}"}


def test_nothing_of_the_developers_agent_or_harness_is_in_the_environment() -> None:
    foreign = ("CLAUDE", "CODEX", "GEMINI", "HARNESS")
    # Runs of tests start outside of a sandbox.
    assert [name for name in os.environ if name.startswith(foreign)] == ["HARNESS_SANDBOX"]


def test_the_server_that_the_developer_names_is_the_one_of_the_tests() -> None:
    """The guard removes its name, too, before a test asks for it."""
    named = "postgresql://db.example.org/"
    look = "import os; from tests import postgres; os.environ.clear(); print(postgres.url())"
    env = {**os.environ, "HARNESS_TEST_DATABASE": named}
    said = run_to_end([sys.executable, "-c", look], cwd=CHECKOUT, env=env, check=True)
    assert said.stdout == f"{named}\n"


def test_the_guard_removes_what_the_developer_had_set(tmp_path: Path) -> None:
    """A whole pytest run under a hostile environment, in which a test looks around."""
    probe = (
        "import os\n"
        "def test_probe():\n"
        "    hostile = [n for n, v in os.environ.items() if 'hostile' in v and n != 'PYTEST_CURRENT_TEST']\n"
        "    assert hostile == []\n"
    )
    names = [
        "HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "GIT_DIR", "GIT_INDEX_FILE", "GIT_CONFIG_GLOBAL",
        "CLAUDE_PROJECT_DIR", "CLAUDE_CODE_SESSION_ID", "CODEX_SESSION_ID", "GEMINI_SESSION_ID",
        "HARNESS_STATE_ROOT", "HARNESS_DISABLED",
    ]  # fmt: skip
    assert "1 passed" in probed(tmp_path, probe, **dict.fromkeys(names, "/hostile"))


@pytest.mark.parametrize(("options", "ran"), [([], "1 passed, 1 deselected"), (["--release"], "2 passed")])
def test_what_is_marked_release_runs_only_where_it_is_asked_for(
    tmp_path: Path, options: list[str], ran: str
) -> None:
    probe = (
        "import pytest\n"
        "@pytest.mark.parametrize('seed', [1, pytest.param(2, marks=pytest.mark.release)])\n"
        "def test_probe(seed): pass\n"
    )
    assert f"{ran} in" in probed(tmp_path, probe, *options)


def test_repositories_have_one_commit_on_main_by_the_test_person(repo: Path) -> None:
    assert sh(repo, "log", "--format=%an %s", "main") == "Test Person Begin"
    assert sh(repo, "status", "--porcelain") == ""


def test_a_test_may_have_several_repositories(make_repo: MakeRepo) -> None:
    assert make_repo("one") != make_repo("two")


def test_harness_runs_in_the_tests_repository_with_its_environment(harness: Harness) -> None:
    answer = harness("status", "--json", env={"HARNESS_STATE_ROOT": None})
    assert answer.json["verb"] == "status"
    assert answer.code == answer.json["exit"]
