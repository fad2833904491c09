"""Credentials: asked for on a terminal, kept where only their owner can read, and used."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

from tests.loop.conftest import CHAT, Hs, Serve
from tests.loop.servers.script import say
from tests.loop.source_files import write_program

KEY = "sk-0123456789"


def on_a_terminal(project: Path, *args: str, typed: str) -> str:
    """Run `hs ARGS` in a terminal of its own and type; return what the terminal showed."""
    ours, theirs = pty.openpty()
    run = subprocess.Popen(
        [sys.executable, "-c", _CHILD, *args],
        cwd=project,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    while b"Key for" not in shown:
        shown += os.read(ours, 1000)
    os.write(ours, f"{typed}\n".encode())
    try:
        while chunk := os.read(ours, 1000):
            shown += chunk
    except OSError:
        # Linux says so that the other end is closed.
        pass
    os.close(ours)
    assert run.wait(60) == 0, shown
    return shown.decode()


_CHILD = f"""
import fcntl, sys, termios
fcntl.ioctl(0, {termios.TIOCSCTTY}, 0)
from harness_lib.hs.main import entry
sys.exit(entry())
"""


def test_a_key_is_asked_for_kept_and_used(hs: Hs, serve: Serve, home: Path, project: Path) -> None:
    shown = on_a_terminal(project, "auth", "set", "groq", typed=KEY)

    path = home / ".harness" / ".auth.json"
    assert KEY not in shown
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_text(encoding="utf-8")) == {"groq": [{"type": "api_key", "key": KEY}]}
    assert hs("auth", "list").out == "groq [0] type=api_key key=sk-0...6789\n"

    server = serve(CHAT, say("Hello."))
    (home / ".harness" / "providers").mkdir()
    conf = f"protocol=openai\nmodel=m\nurl={server.address}{CHAT.path}\nauth_env=GROQ_API_KEY\n"
    (home / ".harness" / "providers" / "groq.conf").write_text(conf, encoding="utf-8")
    assert hs("hello").out == "Hello.\n"
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"

    assert hs("auth", "rm", "groq", "0").code == 0
    assert hs("auth", "list").out == ""


def test_without_a_terminal_no_key_is_asked_for(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "harness_lib.hs", "auth", "set", "groq"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        start_new_session=True,
        check=False,
    )

    assert done.returncode == 7
    assert "no terminal" in done.stderr
    assert not (home / ".harness" / ".auth.json").exists()


def test_a_hook_of_home_gives_the_credential(hs: Hs, home: Path) -> None:
    write_program(
        home / ".harness" / "hooks.d" / "auth-set" / "10-vault",
        '#!/bin/sh\necho "{\\"type\\":\\"api_key\\",\\"key\\":\\"$HARNESS_AUTH_PROVIDER-key\\"}"\n',
    )

    assert hs("auth", "set", "groq").code == 0
    assert hs("auth", "list", "groq").out == "groq [0] type=api_key key=groq-key\n".replace(
        "groq-key", "****"
    )


def test_a_broken_file_of_credentials_is_not_overwritten(hs: Hs, home: Path) -> None:
    path = home / ".harness" / ".auth.json"
    path.parent.mkdir()
    path.write_text("{half", encoding="utf-8")

    assert hs("auth", "rm", "groq", "0").code == 3
    assert path.read_text(encoding="utf-8") == "{half"
