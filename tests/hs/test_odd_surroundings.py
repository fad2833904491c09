"""Surroundings that people have: a locale without UTF-8, a proxy of another kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness_lib.loop.failures import ProviderError
from harness_lib.loop.wires import forms
from tests.loop.conftest import CHAT, Hs, Serve
from tests.loop.servers.script import say, use

FACE = "\N{GRINNING FACE}"
# What Python makes of a locale without UTF-8, which few machines of developers have.
OLD = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "latin-1"}


@pytest.mark.parametrize("streamed", ["", "1"])
def test_what_the_locale_cannot_show_ends_no_answer(
    hs: Hs, serve: Serve, project: Path, streamed: str
) -> None:
    server = serve(CHAT, use("bash", command=f"echo {FACE} | tee seen"), say(f"Done {FACE}."))

    answer = hs("go", env={**CHAT.environment(server), **OLD, "HARNESS_STREAM": streamed})

    assert (answer.code, answer.out) == (0, "Done ?.\n"), answer.err
    assert (project / "seen").read_text(encoding="utf-8") == f"{FACE}\n"
    assert FACE in server.requests[1]["messages"][-1]["content"]


def test_events_are_utf_8_in_every_locale(hs: Hs, serve: Serve) -> None:
    server = serve(CHAT, say(f"Done {FACE}."))

    answer = hs("--json", "go", env={**CHAT.environment(server), **OLD})

    assert json.loads(answer.out.splitlines()[-1])["output"] == f"Done {FACE}."


@pytest.mark.parametrize("proxy", ["socks5://me:secret@127.0.0.1:1", "nonsense://127.0.0.1:1"])
def test_a_proxy_that_cannot_be_used_is_said(hs: Hs, serve: Serve, proxy: str) -> None:
    server = serve(CHAT, say("never"))

    answer = hs("go", env={**CHAT.environment(server), "ALL_PROXY": proxy, "NO_PROXY": ""})

    assert (answer.code, answer.out, server.requests) == (1, "", [])
    assert "hs speaks with HTTP proxies only" in answer.err
    assert "secret" not in answer.err


def test_certificates_that_are_not_where_a_variable_says_are_said(hs: Hs, serve: Serve) -> None:
    server = serve(CHAT, say("never"))
    env = {name: value.replace("http://", "https://") for name, value in CHAT.environment(server).items()}

    answer = hs("go", env={**env, "SSL_CERT_FILE": "/nowhere/cacert.pem"})

    assert (answer.code, answer.out, server.requests) == (1, "", [])
    assert "The certificates of this machine cannot be read" in answer.err
    assert "SSL_CERT_FILE" in answer.err


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "nonsense://127.0.0.1:1"])
def test_a_form_meets_such_a_proxy_as_a_request_does(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    monkeypatch.setenv("NO_PROXY", "")
    with pytest.raises(ProviderError, match="HTTP proxies only"):
        forms.post("http://127.0.0.1:1/token", {"grant_type": "refresh_token"})
