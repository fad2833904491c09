"""Who may say where plugins come from, and whose credentials and variants count."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.loop.conftest import CHAT, Hs, Serve
from tests.loop.servers.script import say
from tests.loop.source_files import write


@pytest.mark.parametrize("place", ["project/.harness", "home/.harness/plugins/p"])
def test_a_sources_hook_of_a_project_or_a_pack_is_not_asked(
    hs: Hs, home: Path, project: Path, place: str
) -> None:
    root, _, rest = place.partition("/")
    directory = {"project": project, "home": home}[root] / rest
    spied = project.parent / "spied"
    write(directory / "hooks.d/sources/50-spy", f'#!/bin/sh\ntouch "{spied}"; cat\n', 0o755)

    assert hs("trust").code == 0
    assert hs("tools").code == 0

    assert not spied.exists()


@pytest.mark.parametrize(("text", "code"), [("exit 4", 3), ("echo no list", 1), ("echo '{}'", 3)])
def test_a_sources_hook_that_fails_ends_the_start(hs: Hs, home: Path, text: str, code: int) -> None:
    write(home / ".harness/hooks.d/sources/50-no", f"#!/bin/sh\n{text}\n", 0o755)

    answer = hs("tools")

    assert (answer.code, answer.out) == (code, "")
    assert "sources" in answer.err


def test_a_program_goes_before_a_variant_of_its_name(hs: Hs, serve: Serve, home: Path) -> None:
    server = serve(CHAT, say("never"))
    conf = f"protocol=openai\nmodel=m\nurl={server.address}{CHAT.path}\n"
    write(home / ".harness/providers/both.conf", conf)
    write(home / ".harness/providers/both", "#!/bin/sh\necho model=of-the-program\n", 0o755)

    chosen = hs("hook", "resolve/30-defaults", stdin='{"provider":"both","model":""}').out

    assert json.loads(chosen) == {"provider": "both", "model": "of-the-program"}


@pytest.mark.parametrize(
    ("expires", "expected"),
    [(None, "groq"), ("0", "groq"), (str(int(time.time()) + 3600), "groq"), ("1000", "")],
    ids=["never", "zero", "in an hour", "long ago"],  # not the moment: each worker has its own
)
def test_a_variant_is_ready_with_a_credential_that_has_not_expired(
    hs: Hs, home: Path, expires: str | None, expected: str
) -> None:
    entry = {"type": "api_key", "key": "k"} | ({"expires_at": expires} if expires else {})
    write(home / ".harness/.auth.json", json.dumps({"groq": [entry]}), 0o600)

    chosen = json.loads(hs("hook", "resolve/20-detect", stdin='{"provider":"","model":""}').out)

    assert chosen.get("provider", "") == expected


def test_local_credentials_are_those_of_the_nearest_directory(hs: Hs, home: Path, project: Path) -> None:
    vault = '#!/bin/sh\necho "{\\"type\\":\\"api_key\\",\\"key\\":\\"k-$HARNESS_AUTH_PROVIDER\\"}"\n'
    write(home / ".harness/hooks.d/auth-set/10-vault", vault, 0o755)
    (project / ".harness").mkdir()
    inner = project / "a"
    inner.mkdir()

    assert hs("auth", "set", "groq", "--local", cwd=inner).code == 0

    path = project / ".harness" / ".auth.json"
    assert json.loads(path.read_text(encoding="utf-8")) == {"groq": [{"type": "api_key", "key": "k-groq"}]}
    assert path.stat().st_mode & 0o777 == 0o600
    assert not (home / ".harness/.auth.json").exists()
    assert hs("auth", "rm", "nobody", "0", "--local", cwd=inner).code == 0
    assert hs("auth", "rm", "groq", "0", "--local", cwd=inner).code == 0
    assert json.loads(path.read_text(encoding="utf-8")) == {}


def test_a_credential_set_here_is_used_here(hs: Hs, serve: Serve, home: Path, project: Path) -> None:
    vault = '#!/bin/sh\necho "{\\"type\\":\\"api_key\\",\\"key\\":\\"k-local\\"}"\n'
    write(home / ".harness/hooks.d/auth-set/10-vault", vault, 0o755)
    (project / ".harness").mkdir()
    hs("auth", "set", "openai", "--local")
    server = serve(CHAT, say("Done."))

    before = hs("go", env=CHAT.environment(server))
    hs("trust")
    after = hs("go", env=CHAT.environment(server))

    assert "hs trust" in before.err
    assert after.out == "Done.\n", after.err
    assert server.headers[1]["authorization"] == "Bearer k-local"
