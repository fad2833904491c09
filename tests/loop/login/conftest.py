"""A provider with a login: its servers, its `.conf`, who logs in there, and what is stored of it."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.loop.conftest import Hs
from tests.loop.servers.oauth import CLIENT, SCOPE, AuthServer
from tests.loop.servers.openai import OpenAI
from tests.loop.servers.script import ModelServer, say
from tests.loop.source_files import at_home, write, write_script
from tests.run_to_end import Said


def describe(auth: AuthServer, model: ModelServer, /, **more: str) -> Path:
    values = {
        "protocol": "openai",
        "model": "gpt-5.5",
        "url": f"{model.address}/v1/responses",
        "max_tokens_field": "none",
        "auth": "oauth",
        "authorize_url": f"{auth.address}/authorize",
        "token_url": f"{auth.address}/token",
        "client_id": CLIENT,
        "scope": SCOPE,
        "account_claim": "https://api.openai.com/auth chatgpt_account_id",
        "header.chatgpt-account-id": "{account_id}",
        "header.originator": "hs",
        **more,
    }
    return write("providers/hosted.conf", "".join(f"{key}={value}\n" for key, value in values.items()))


def browser() -> dict[str, str]:
    """Return the environment of the user whose browser follows every redirect, as browsers do."""
    program = Path.home() / "browser"
    code = "import sys, urllib.request as r; r.build_opener(r.ProxyHandler({})).open(sys.argv[1]).read()"
    write_script(program, f'exec {shlex.quote(sys.executable)} -c {shlex.quote(code)} "$1"')
    return {"BROWSER": f"{program} %s"}


def logged_in(hs: Hs) -> Said:
    said = hs("auth", "login", "hosted", env=browser(), session=True)
    assert said.code == 0, said.err
    return said


def stored() -> dict[str, str]:
    login = json.loads(at_home(".auth.json").read_text())["hosted"][0]
    assert isinstance(login, dict)
    return login


def expire() -> None:
    path = at_home(".auth.json")
    credentials = json.loads(path.read_text())
    credentials["hosted"][0]["expires_at"] = str(int(time.time()) - 1)
    path.write_text(json.dumps(credentials))


@pytest.fixture
def auth() -> Iterator[AuthServer]:
    server = AuthServer()
    yield server
    server.gate.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(OpenAI, [say("Hello.")]) as server:
        yield server


@pytest.fixture
def provider(auth: AuthServer, model: ModelServer) -> Path:
    """Describe a provider `hosted` that has a login; its servers are ours."""
    return describe(auth, model)
