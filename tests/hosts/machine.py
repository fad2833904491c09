"""A machine with one user on it: a home, a project, the programs, and no way out.

Everything that a client sees is given here by name; nothing is taken over from whoever runs the tests.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness_lib.system import mkdir_lock
from harness_lib.system.mkdir_lock import SeedLock
from tests.conftest import CHECKOUT, GIT_CONFIG
from tests.run_to_end import Said

# A run takes seconds; a machine that is busy with other tests may take many times that.
TIMEOUT_SECONDS = 120

# Nothing listens there, so whatever is not for this machine ends at once.
FENCE = "http://127.0.0.1:9"


class Ran(Said):
    """What a process answered."""

    @property
    def events(self) -> list[dict[str, Any]]:
        """Return the objects of an output that is one JSON object per line."""
        return [json.loads(line) for line in self.out.splitlines() if line.startswith("{")]

    def check(self) -> Ran:
        """Return itself; fail the test with what it said if it failed."""
        assert self.code == 0, f"exit {self.code}\n{self.out[-4000:]}\n{self.err[-4000:]}"
        return self


@dataclass
class Machine:
    """`programs` are directories for the PATH; `harness_home` holds the prepared packages of the launcher."""

    home: Path
    project: Path
    harness_home: Path
    programs: list[Path] = field(default_factory=list)

    @classmethod
    def make(cls, place: Path, harness_home: Path) -> Machine:
        """Return a machine in `place` with an empty home and a repository of one commit."""
        made = cls(place / "home", place / "project", harness_home)
        made.home.mkdir(parents=True)
        (made.home / ".gitconfig").write_text(GIT_CONFIG)
        made.programs.append(_python(place / "bin"))
        # Codex types commands into a login shell, which forgets the PATH where it is not told here.
        (made.home / ".profile").write_text(f'PATH="{place / "bin"}:$PATH"\n')
        made.project.mkdir()
        (made.project / "README.md").write_text("# Project\n")
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "Begin"]):
            made.run("git", *words).check()
        return made

    def clear(self) -> None:
        """Remove what a killed or released agent has left outside of this machine's folders."""
        lock = SeedLock(self.project)
        holder = mkdir_lock.holder_of(lock.path)
        if holder is not None and holder.pid is not None:
            lock.release(holder.pid)

    def env(self, extra: Mapping[str, str]) -> dict[str, str]:
        """Return the whole environment of a process on this machine."""
        git = Path(shutil.which("git") or "/usr/bin/git").parent
        search = [*self.programs, git, *map(Path, ("/usr/local/bin", "/usr/bin", "/bin"))]
        return {
            "PATH": os.pathsep.join(map(str, search)),
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "HARNESS_HOME": str(self.harness_home),
            "HARNESS_SANDBOX": "off",
            "HTTP_PROXY": FENCE,
            "HTTPS_PROXY": FENCE,
            "ALL_PROXY": FENCE,
            "NO_PROXY": "127.0.0.1,localhost",
            **extra,
        }

    def run(
        self,
        *command: str | Path,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str = "",
    ) -> Ran:
        """Run `command` to its end; whatever it has started in its process group ends with it."""
        process = subprocess.Popen(
            list(map(str, command)),
            cwd=cwd or self.project,
            env=self.env(env or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        try:
            out, err = process.communicate(stdin, timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            _end(process)
            out, err = process.communicate()
            raise AssertionError(
                f"{command[0]} was still running after {TIMEOUT_SECONDS} s:\n{out[-4000:]}\n{err[-4000:]}"
            ) from None
        finally:
            _end(process)
        return Ran(process.returncode, out, err)

    # -- the harness, as this user types it

    def harness(self, *words: str, env: Mapping[str, str] | None = None) -> Ran:
        """Type `harness WORDS` of the checkout."""
        return self.run(CHECKOUT / "bin/harness", *words, env=env)

    def add(self, title: str, *options: str) -> None:
        """Add a task; the first one makes the list too."""
        if not self.tasks_file.exists():
            self.harness("init").check()
        self.harness("add", title, *options).check()

    def skills_add(self, source: Path, *flags: str, agents: Sequence[str] = ("claude-code", "codex")) -> None:
        """Type `skills add` as README says."""
        self.run("skills", "add", source, "-a", *agents, "-y", *flags).check()

    @property
    def skills(self) -> Path:
        """The user's own skills, as Claude Code looks for them."""
        return self.home / ".claude/skills"

    @property
    def tasks_file(self) -> Path:
        return self.project / "harness-tasks.json"

    @property
    def enable_flag(self) -> Path:
        return self.project / ".harness-active"

    @property
    def state(self) -> dict[str, Any]:
        document = json.loads(self.tasks_file.read_text())
        assert isinstance(document, dict)
        return document

    @property
    def statuses(self) -> Sequence[str]:
        return [task["status"] for task in self.state["tasks"]]

    @property
    def subjects(self) -> list[str]:
        """Return the subjects of the project's commits, the newest first."""
        return self.run("git", "log", "--format=%s").check().out.splitlines()

    @property
    def log(self) -> str:
        return (self.project / "harness-progress.txt").read_text()


def _python(folder: Path) -> Path:
    """Return a directory whose `python3` is the interpreter of the tests: a shim may need the real home."""
    folder.mkdir(parents=True)
    (folder / "python3").symlink_to(os.path.realpath(sys.executable))
    return folder


def _end(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
