"""Tokens are renewed by one process for all, and are seen by nobody."""

from __future__ import annotations

import json
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.loop.conftest import Hs, Started
from tests.loop.login.conftest import browser, describe, expire, logged_in, stored
from tests.loop.servers.oauth import ACCOUNT, AuthServer
from tests.loop.servers.openai import OpenAI
from tests.loop.servers.script import ModelServer, Step, bash, say
from tests.loop.source_files import at_home
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("provider")


REFUSED = Step(status=401, said="the token is not taken")


def test_a_token_is_renewed_before_it_expires(hs: Hs, auth: AuthServer, model: ModelServer) -> None:
    logged_in(hs)
    expire()

    assert hs("--provider", "hosted", "hello").out == "Hello.\n"

    assert len(auth.renewals) == 1
    assert auth.is_good(model.headers[0]["authorization"])
    assert stored()["refresh_token"] == auth.refresh_token
    assert stored()["account_id"] == ACCOUNT
    assert at_home(".auth.json").stat().st_mode & 0o777 == 0o600
    assert hs("--provider", "hosted", "hello").code == 0
    file = at_home(".auth.json")
    login = json.loads(file.read_text())
    del login["hosted"][0]["expires_at"]
    file.write_text(json.dumps(login))
    assert hs("--provider", "hosted", "hello").code == 0, "and one of which that is not known is not"
    assert len(auth.renewals) == 1


def test_a_host_that_takes_no_token_at_all_is_not_asked_for_ever(
    hs: Hs, auth: AuthServer, model: ModelServer
) -> None:
    logged_in(hs)
    model.steps = [REFUSED]

    said = hs("--provider", "hosted", "hello")

    assert said.code == 1
    assert "answered 401: the token is not taken. Log in again: hs auth login hosted" in said.err
    assert (len(auth.renewals), len(model.requests)) == (1, 2)


def test_ctrl_c_during_a_renewal_loses_no_login(hs: Hs, started: Started, auth: AuthServer) -> None:
    logged_in(hs)
    expire()
    auth.gate.clear()
    run = started("--provider", "hosted", "hello", stderr=subprocess.PIPE)
    until("two forms", lambda: len(auth.forms) == 2)
    run.send_signal(signal.SIGINT)
    # What it was sent is old from here on.
    auth.gate.set()
    run.communicate(timeout=200)

    assert run.returncode == 130
    assert hs("--provider", "hosted", "hello").out == "Hello.\n"
    assert len(auth.renewals) == 1
    assert auth.refusals == []


@pytest.mark.parametrize("how", ["it has expired", "the host refuses it"])
def test_many_at_once_renew_once(hs: Hs, auth: AuthServer, how: str) -> None:
    class Guarded(OpenAI):
        def do_POST(self) -> None:
            if auth.is_good(self.headers.get("authorization") or ""):
                super().do_POST()
            else:
                self.body()
                self.reply(401, self.error("the token is not taken"))

    with ModelServer(Guarded, [say("Hello.")]) as guarded, ThreadPoolExecutor(4) as pool:
        describe(auth, guarded)
        logged_in(hs)
        if how == "it has expired":
            expire()
        else:
            # Taken back before its time: only the host knows.
            auth.access_tokens.append("the one that counts")
        auth.gate.clear()
        runs = [pool.submit(hs, "--provider", "hosted", "hello") for _ in range(4)]
        # The first renewal waits at the server until the others wait for the lock, or have sent theirs.
        until("those that wait", lambda: waiting() == 3 or len(auth.forms) > 2)
        auth.gate.set()
        assert [run.result().out for run in runs] == ["Hello.\n"] * 4

    assert len(auth.renewals) == 1
    assert auth.refusals == []
    assert len({sent["authorization"] for sent in guarded.headers}) == 1


def waiting() -> int:
    """Return how many processes wait for the lock of the credentials, as the kernel says."""
    lock = at_home(".auth.lock")
    inode = lock.stat().st_ino if lock.exists() else 0
    lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    return sum("->" in line and f":{inode} " in line for line in lines)


def test_a_login_that_has_ended_says_what_to_type_and_shows_no_token(hs: Hs, auth: AuthServer) -> None:
    logged_in(hs)
    known = auth.secrets_given()
    expire()
    auth.refresh_token = "revoked"

    said = hs("--provider", "hosted", "hello")

    assert said.code == 1
    assert "answered 400: unknown refresh token" in said.err
    assert "Log in again: hs auth login hosted" in said.err
    assert auth.refusals == ["unknown refresh token"]
    assert not any(secret in said.err + said.out for secret in known if secret)


def test_an_authorization_server_that_is_ill_is_asked_again(hs: Hs, auth: AuthServer) -> None:
    logged_in(hs)
    expire()
    auth.ill = 1

    said = hs("--provider", "hosted", "hello")

    assert said.out == "Hello.\n"
    assert "answered 503" in said.err


def test_tokens_are_nowhere_but_in_the_file_of_credentials(
    hs: Hs, auth: AuthServer, model: ModelServer, home: Path, tmp_path: Path, project: Path
) -> None:
    said = logged_in(hs)
    expire()
    # The host repeats what it was sent, as some do.
    model.steps = [bash("env; cat /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'"), say("Done.")]
    done = hs("--provider", "hosted", "--json", "hello", env={"HARNESS_LOG": str(tmp_path / "log")})
    model.steps = [Step(status=401, said="Incorrect token provided: {authorization}")]
    model.requests.clear()
    failed = hs("--provider", "hosted", "hello")

    assert (done.code, failed.code) == (0, 1)
    assert "Incorrect token provided: Bearer ***" in failed.err
    shown = f"{said}{done}{failed}"
    secrets = [secret for secret in auth.secrets_given() if secret]
    assert len(secrets) > 4
    credentials = {home / ".harness" / name for name in (".auth.json", ".auth-cache.json")}
    files = [path for path in (*home.rglob("*"), *project.rglob("*"), tmp_path / "log") if path.is_file()]
    kept = "".join(path.read_text("utf-8", "replace") for path in files if path not in credentials)
    assert [secret for secret in secrets if secret in shown + kept] == []
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in credentials)


def test_the_kept_login_of_a_trusted_project_is_renewed_there_and_stays_trusted(
    hs: Hs, auth: AuthServer, project: Path
) -> None:
    (project / ".harness").mkdir()
    hs("auth", "login", "hosted", "--local", env=browser(), session=True)
    path = project / ".harness/.auth.json"
    credentials = json.loads(path.read_text())
    credentials["hosted"][0]["expires_at"] = "1"
    path.write_text(json.dumps(credentials))
    assert hs("trust").code == 0

    assert hs("--provider", "hosted", "hello").out == "Hello.\n"
    assert hs("--provider", "hosted", "hello").err.count("not used") == 0

    assert json.loads(path.read_text())["hosted"][0]["access_token"] == auth.access_tokens[-1]
    assert not at_home(".auth.json").exists()
    assert len(auth.renewals) == 1
