"""Agents and checks of a run in a sandbox, with each engine that starts on this machine."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from harness_lib.system.processes import engines
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put, sh

if TYPE_CHECKING:
    import pytest


def test_an_agent_writes_its_work_tree_its_temporary_directory_and_caches(
    engine: str, workshop: Workshop, home: Path
) -> None:
    (home / ".cache").mkdir()
    task = workshop.add(
        "Write",
        "grep -q done made && test ! -e ~/outside",
        do="sh touch $TMPDIR/a ~/.cache/b && echo done > made; touch ~/outside; true",
    )
    said = workshop.ends(0, "--sandbox", engine)
    assert "sandbox: " in said.stdout
    assert workshop.statuses() == {task: "completed"}
    assert (home / ".cache" / "b").exists()
    assert not (home / "outside").exists()
    workshop.nothing_is_left_over()


# Each prints what it gets to read; none of it may work.
ATTACKS = """
cat ~/.ssh/id_ed25519
cat ~/.config/gh/hosts.yml
ln ~/.ssh/id_ed25519 hard && cat hard
cp -r ~/.ssh copy; cat copy/*
ln -s ~/.ssh link; cat link/id_ed25519
cat /proc/self/root$HOME/.ssh/id_ed25519
cat /proc/$PPID/root$HOME/.ssh/id_ed25519
touch $PROJECT/harm
echo x > $PROJECT/.git/hooks/pre-commit
git -C $PROJECT config core.fsmonitor ./harm
mkdir -p $PROJECT/.harness/harm
mv made $PROJECT/harm
printenv GH_TOKEN
printenv HARNESS_IN_SANDBOX
echo x > ~/.bashrc
cat $HARNESS_HOME/hidden/*/check.json
cat ~/.config/other.ini
"""


def test_an_agent_reads_no_secret_and_writes_nowhere_else(
    engine: str, workshop: Workshop, home: Path
) -> None:
    put(home / "attacks.sh", ATTACKS)
    config = (workshop.top / ".git" / "config").read_bytes()
    task = workshop.add(
        "Try",
        "test -f made",
        "--hidden",
        "echo held out",
        do="sh sh -v ~/attacks.sh > seen 2>&1; touch made; true",
    )
    workshop.ends(0, "--sandbox", engine, GH_TOKEN="the word", PROJECT=str(workshop.top))
    assert workshop.statuses() == {task: "completed"}
    seen = sh(workshop.top, "show", "main:seen")
    for secret in ("a key", "a token", "the word", "held out", '"bubblewrap"', '"nono"'):
        assert secret not in seen
    # What is no secret can be read.
    assert "no secret" in seen
    harm = ["harm", ".harness/harm", ".git/hooks/pre-commit"]
    assert [name for name in harm if (workshop.top / name).exists()] == []
    assert (workshop.top / ".git" / "config").read_bytes() == config
    assert not (home / ".bashrc").exists()


def test_a_check_is_confined_as_its_agent_is(engine: str, workshop: Workshop, home: Path) -> None:
    workshop.add("Check", "test -f made; touch ~/outside; ! cat ~/.ssh/id_ed25519", do="sh echo done > made")
    workshop.ends(0, "--sandbox", engine)
    assert not (home / "outside").exists()


def test_a_path_that_the_user_names_may_be_written(engine: str, workshop: Workshop, home: Path) -> None:
    (home / "shared").mkdir()
    workshop.add("Share", "test -f made", do="sh touch ~/shared/a && touch made")
    workshop.ends(0, "--sandbox", engine, "--allow-write", str(home / "shared"))
    assert (home / "shared" / "a").exists()


def test_where_no_engine_starts_a_run_with_one_is_refused_and_auto_says_so(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "ENGINES", ("bubblewrap",))
    # git is asked before.
    (tmp_path / "bin").mkdir()
    for name in ("git", "true"):
        found = shutil.which(name)
        assert found
        (tmp_path / "bin" / name).symlink_to(found)
    typed = ("run", "--agent-command", "true", "--dry-run", "--sandbox")
    path = str(tmp_path / "bin")
    said = workshop(*typed, "require", PATH=path)
    assert said.code == 7
    assert "Install bubblewrap" in said.text
    assert "bubblewrap: bwrap is not on the PATH" in said.text
    assert "sandbox: none" in workshop(*typed, "auto", PATH=path).text
