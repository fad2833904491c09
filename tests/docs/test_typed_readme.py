"""README's commands as a newcomer pastes them: as blocks, into a shell on a terminal."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import CHECKOUT, README, section
from tests.launcher.launching import REAL_ENVIRON
from tests.system.git.gitrepo import commit_all, sh
from tests.terminal.pseudo_terminal import ESCAPE, TERMINAL, read_to_end

# All that is on the PATH of a new machine: git, Python, and what every system has.
PROGRAMS = (
    "git",
    "sh",
    "bash",
    "env",
    "mkdir",
    "ln",
    "cat",
    "grep",
    "dirname",
    "readlink",
    "uname",
    "rm",
    "ps",
)
COMPLETED = "[completed] task-001: Say hello"


def _block(text: str, number: int = 0) -> str:
    return text.split("```sh\n")[number + 1].split("```", maxsplit=1)[0]


def _typed(cwd: Path, env: dict[str, str], text: str) -> str:
    """Paste `text` into an interactive shell in `cwd`, leave it, and return what the terminal shows."""
    ours, theirs = pty.openpty()
    shell = ["bash", "--norc", "--noprofile", "-i"]
    process = subprocess.Popen(
        shell, cwd=cwd, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    try:
        os.write(ours, f"{text}\nexit\n".encode())
        return ESCAPE.sub("", read_to_end(ours))
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _project(place: Path) -> None:
    """Make the repository that README calls your-project."""
    top = place / "your-project"
    top.mkdir()
    sh(top, "init", "-q", "-b", "main", ".")
    commit_all(top, "Begin", {"README.md": "A project\n"})


def test_the_first_list_pasted_as_a_block_is_worked_through(tmp_path: Path) -> None:
    """A question of any verb would swallow the next line."""
    _project(tmp_path)

    said = _typed(tmp_path, {**os.environ, **TERMINAL}, _block(section("A first list")))

    assert COMPLETED in said, said
    assert "session 1 has ended" in said, said


@pytest.mark.release
def test_readme_typed_on_a_new_machine(tmp_path: Path) -> None:
    """From a clone to the first completed task, with git, Python and a package registry only."""
    _project(tmp_path)
    clone, home, programs = (tmp_path / name for name in ("clone", "home", "programs"))
    shutil.copytree(
        CHECKOUT, clone, ignore=shutil.ignore_patterns(".*_cache", ".venv", "__pycache__", ".git")
    )
    home.mkdir()
    shutil.copy(Path.home() / ".gitconfig", home)
    programs.mkdir()
    for name in PROGRAMS:
        (programs / name).symlink_to(str(shutil.which(name)))
    (programs / "python3").symlink_to(os.path.realpath(sys.executable))
    kept = {name: REAL_ENVIRON[name] for name in REAL_ENVIRON if name.startswith(("PIP_", "SSL_", "UV_"))}
    path = {"HOME": str(home), "PATH": f"{home}/.local/bin:{programs}"}
    env = {**kept, **TERMINAL, **path, "HARNESS_WORKER_ID": "newcomer"}
    install = section("Install").split("**In a shell**: `")[1].split("`")[0]

    demo = _typed(clone, env, _block(README))
    linked = _typed(clone, env, f"{install}\nhs --version; harness --version")
    said = _typed(tmp_path, env, _block(section("A first list")))

    assert "next: " in demo, demo
    assert "bash: " not in demo + linked + said
    assert linked.count("harness 0") == 2, linked
    assert COMPLETED in said, said
