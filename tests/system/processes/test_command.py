"""What a command line will start is told only where it is certain."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from harness_lib.system.processes.environment import first_word, missing_command


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("pytest -q", "pytest"),
        ("  npm test -- --testPathPattern=auth ", "npm"),
        ("CI=1 A='b c' ./run.sh", "./run.sh"),
        ("pytest -k 'a; b' tests/*.py", "pytest"),
        ('"my tool" --x', "my tool"),
        ("go test ./...", "go"),
    ],
)
def test_simple_commands(command: str, word: str) -> None:
    assert first_word(command) == word


@pytest.mark.parametrize(
    "command",
    [
        *("", "   ", "A=1", "a && b", "a|b", "a; b", "a & b", "(a)", "a > f", "2>&1 a", "a\nb", "$TOOL x"),
        *("`tool` x", "a $(b)", "a 'b", "if a", "! a", "{ a", "cd sub", "[ -f x ]", "test -f x", "true"),
        *(". ./env", "./run-*.sh", "~/bin/x", "# comment", "PATH=/opt tool", "'' x"),
    ],
)
def test_what_cannot_be_told(command: str) -> None:
    assert first_word(command) is None


def test_missing_is_what_the_shell_would_not_find(tmp_path: Path) -> None:
    script = tmp_path / "bin/tool"
    script.parent.mkdir()
    shutil.copy(shutil.which("true") or "", script)
    env = {**os.environ, "PATH": f"bin:{os.environ['PATH']}"}

    for command, missing in [
        ("tool x", None),
        ("bin/tool", None),
        ("./bin/none", "./bin/none"),
        ("no-such-tool -x", "no-such-tool"),
        ("no-such-tool || true", None),
    ]:
        assert missing_command(command, cwd=tmp_path, env=env) == missing
        status = subprocess.run(
            ["sh", "-c", command], cwd=tmp_path, env=env, capture_output=True, check=False
        )
        assert (status.returncode == 127) == (missing is not None)


def test_an_environment_without_a_path_has_the_default_one(tmp_path: Path) -> None:
    assert missing_command("ls", cwd=tmp_path, env={}) is None
    assert missing_command("no-such-tool", cwd=tmp_path, env={}) == "no-such-tool"
