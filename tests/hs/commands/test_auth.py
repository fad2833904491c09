"""Credentials: asked for on a terminal, kept where only their owner can read, and used."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.hs.person import person
from tests.loop.conftest import CHAT, Hs, Serve
from tests.loop.servers.script import say
from tests.loop.source_files import write_program

KEY = "sk-0123456789"


def test_a_key_is_asked_for_kept_and_used(hs: Hs, serve: Serve, home: Path, project: Path) -> None:
    with person("auth", "set", "groq", cwd=project, env={}) as someone:
        someone.sees("Key for")
        someone.types(f"{KEY}\n")
        assert someone.leaves() == 0

    path = home / ".harness" / ".auth.json"
    assert KEY not in someone.raw
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
