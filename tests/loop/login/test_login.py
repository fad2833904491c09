"""Logging in: OAuth 2 with PKCE against a strict server, in a browser or by pasting."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.hs.person import Person, person
from tests.loop.conftest import Hs
from tests.loop.login.conftest import browser, describe, expire, logged_in, stored
from tests.loop.servers.oauth import ACCOUNT, AuthServer
from tests.loop.servers.script import ModelServer
from tests.loop.source_files import at_home

pytestmark = pytest.mark.usefixtures("provider")


def test_the_user_logs_in_by_the_browser_and_the_token_is_used(
    hs: Hs, auth: AuthServer, model: ModelServer
) -> None:
    said = logged_in(hs)

    assert re.search(r"^  http://\S+/authorize\?\S+$", said.err, re.MULTILINE)
    assert said.err.splitlines()[-1] == "hs: logged in at hosted"
    assert stored()["type"] == "oauth"
    assert stored()["account_id"] == ACCOUNT
    assert 3000 < int(stored()["expires_at"]) - time.time() <= 3300
    assert at_home(".auth.json").stat().st_mode & 0o777 == 0o600

    assert hs("--provider", "hosted", "hello").out == "Hello.\n"

    sent = model.headers[0]
    assert auth.is_good(sent["authorization"])
    assert (sent["chatgpt-account-id"], sent["originator"]) == (ACCOUNT, "hs")
    assert "max_output_tokens" not in model.requests[0]
    assert auth.refusals == []


def test_a_key_is_not_sent_beside_a_login(hs: Hs, auth: AuthServer, model: ModelServer) -> None:
    describe(auth, model, protocol="anthropic", auth_env="HOSTED_KEY")
    logged_in(hs)

    hs("--provider", "hosted", "hello", env={"HOSTED_KEY": "sesame"})

    assert auth.is_good(model.headers[0]["authorization"])
    assert "sesame" not in str(model.headers)
    # It has asked a host of the other protocol.
    model.refusals.clear()


def test_who_is_not_logged_in_is_told_what_to_type(hs: Hs) -> None:
    said = hs("--provider", "hosted", "hello")

    assert (said.code, said.out) == (7, "")
    assert said.err == "hs: Nobody is logged in at hosted. Log in: hs auth login hosted\n"
    assert not at_home("sessions").exists()
    assert hs("provider", "hosted", "--ready").code == 1


def test_a_login_makes_its_provider_ready_until_the_user_logs_out(hs: Hs, auth: AuthServer) -> None:
    logged_in(hs)
    expire()

    # It is renewed when it is used.
    assert hs("provider", "hosted", "--ready").code == 0
    assert hs("provider", "--ready").out == "provider=hosted\nmodel=gpt-5.5\n"

    assert hs("auth", "logout", "hosted").err == "hs: logged out of hosted\n"
    files = [path for path in Path.home().rglob("*") if path.is_file()]
    left = "".join(path.read_text() for path in files)
    assert not any(token in left for token in auth.secrets_given() if token)
    assert hs("provider", "hosted", "--ready").code == 1
    assert "nobody is logged in" in hs("auth", "logout", "hosted").err


@pytest.mark.parametrize("form", ["{address}", "{code}", "{code}#{state}", "code={code}&state={state}"])
def test_without_a_browser_the_code_or_the_address_is_pasted(
    form: str, auth: AuthServer, project: Path
) -> None:
    with asked_to_paste(project) as (typed, address):
        parts = dict(pair.split("=") for pair in address.partition("?")[2].split("&"))
        typed.types(f"nonsense?code={parts['code']}&state=another\n")
        typed.sees("This belongs to another login. Paste it again")
        typed.types(f"{form.format(address=address, **parts)}\n")
        typed.sees("hs: logged in at hosted")
        assert typed.leaves() == 0

    assert stored()["access_token"] == auth.access_tokens[-1]
    assert auth.refusals == []


@contextmanager
def asked_to_paste(project: Path) -> Iterator[tuple[Person, str]]:
    """Let the user log in, and yield them and where the authorization server sends their browser."""
    with person("auth", "login", "hosted", cwd=project, env={}) as typed:
        typed.sees("paste the address that it ends up at:")
        address = re.search(r"  (http://\S+/authorize\?\S+)", typed.plain)
        assert address, typed.plain
        status, text, there = opened(address[1])
        assert status == 302, text
        yield typed, there


def opened(address: str) -> tuple[int, str, str]:
    """Return what a browser meets at `address`: status, text, and where it is sent."""
    url = urlsplit(address)
    with closing(HTTPConnection(url.netloc)) as connection:
        connection.request("GET", f"{url.path}?{url.query}")
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers.get("location", "")


def test_where_the_port_is_taken_pasting_is_left(
    auth: AuthServer, model: ModelServer, project: Path, hs: Hs
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        describe(auth, model, redirect_port=str(port))
        refused = hs("auth", "login", "hosted", session=True)
        assert refused.code == 7
        assert f"Another program listens at port {port}" in refused.err
        with asked_to_paste(project) as (typed, address):
            assert f"Another program listens at port {port}" in typed.plain
            assert f"127.0.0.1:{port}/callback" in address
            typed.types(f"{address}\n")
            assert typed.leaves() == 0
    assert stored()["type"] == "oauth"


def test_an_answer_with_another_state_is_not_taken_and_the_login_goes_on(
    auth: AuthServer, project: Path
) -> None:
    with asked_to_paste(project) as (typed, address):
        # A browser may open a connection in advance and say nothing on it.
        silent = socket.create_connection(("127.0.0.1", urlsplit(address).port or 0))
        for wrong, status in (
            (re.sub("state=.*", "state=another", address), 400),
            (address.partition("&state")[0], 400),
            (address.replace("/callback", "/other"), 404),
        ):
            assert opened(wrong)[0] == status
        assert auth.forms == []
        assert "close this window" in opened(address)[1]
        silent.close()
        assert typed.leaves() == 0
    assert stored()["access_token"] == auth.access_tokens[-1]


def test_the_user_who_says_no_is_not_logged_in(hs: Hs, auth: AuthServer) -> None:
    auth.denied = True

    said = hs("auth", "login", "hosted", env=browser(), session=True)

    assert said.code == 7
    assert "The login was refused: The user\ufffd[2J said no." in said.err
    assert not at_home(".auth.json").exists()


def test_ctrl_c_ends_a_login(project: Path) -> None:
    with asked_to_paste(project) as (typed, _):
        typed.types("\x03")
        assert typed.leaves() == 130
    assert not at_home(".auth.json").exists()


@pytest.mark.parametrize(
    ("make", "code", "problem"),
    [
        (lambda path: path.write_text("{half"), 3, ".auth.json is not a JSON object"),
        (lambda path: path.mkdir(), 7, ".auth.json cannot be read: Is a directory"),
    ],
)
def test_what_cannot_be_stored_is_said_before_the_user_logs_in(
    make: Callable[[Path], object], code: int, problem: str, hs: Hs, auth: AuthServer
) -> None:
    make(at_home(".auth.json"))

    said = hs("auth", "login", "hosted", env=browser(), session=True)

    assert (said.code, auth.codes) == (code, {})
    assert problem in said.err
    assert "authorize" not in said.err


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("token_url", "http://example.com/token", "would send a login unencrypted; it wants https"),
        ("authorize_url", "ftp://127.0.0.1/", "would send a login unencrypted; it wants https"),
        ("client_id", "", "has no client_id= in its .conf file"),
        ("redirect_port", "65536", "Invalid redirect_port=65536 of hosted"),
        ("auth", "magic", "Unknown auth=magic in the .conf file of hosted; hs knows auth=oauth."),
    ],
)
def test_a_wrong_description_says_what_is_wrong(
    key: str, value: str, problem: str, hs: Hs, auth: AuthServer, model: ModelServer
) -> None:
    describe(auth, model, **{key: value})

    said = hs("auth", "login", "hosted", session=True)

    assert said.code == 7
    assert problem in said.err
    assert auth.forms == []


def test_the_bundled_chatgpt_says_what_it_needs(hs: Hs) -> None:
    assert hs("provider", "chatgpt", "--ready").code == 1
    assert hs("provider", "chatgpt", "--describe").out.startswith("ChatGPT subscription")
    assert hs("provider", "chatgpt", "--defaults").out == "model=gpt-5.5\n"
    assert hs("provider", "chatgpt", "--env").out == "(a login: hs auth login chatgpt)\n"
    assert hs("--provider", "chatgpt", "hello").err == (
        "hs: Nobody is logged in at chatgpt. Log in: hs auth login chatgpt\n"
    )
    assert "(hs auth login chatgpt)" in hs("help").out


def test_the_bundled_chatgpt_goes_where_codex_goes(project: Path) -> None:
    with person("auth", "login", "chatgpt", cwd=project, env={}) as typed:
        typed.sees("code_challenge_method=S256")
        address = re.search(r"  (https://auth\.openai\.com/oauth/authorize\?\S+)", typed.plain)
        typed.types("\x03")
        typed.leaves()
    assert address
    for part in (
        "response_type=code",
        "client_id=app_EMoamEEZ73f0CkXaXp7hrann",
        "redirect_uri=http%3A%2F%2Flocalhost%3A1455%2Fauth%2Fcallback",
        "scope=openid+profile+email+offline_access",
    ):
        assert part in address[1]


def test_the_stage_is_a_program_of_its_own(hs: Hs, auth: AuthServer) -> None:
    env = browser() | {"HARNESS_AUTH_PROVIDER": "hosted"}
    done = hs("hook", "auth-set/10-oauth", env=env, stdin="{}", session=True)

    assert json.loads(done.out)["access_token"] == auth.access_tokens[-1]
