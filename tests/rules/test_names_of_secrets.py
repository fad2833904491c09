"""What a file is called says whether the user should see it before it is committed."""

from __future__ import annotations

import pytest

from harness_lib.rules import input_changes

SECRET = """
    .env web/.env .ENV .env.local .env.production
    server.pem keys/Server.PEM
    id_rsa .ssh/id_ed25519 id_ed25519.bak id_deploy
    credentials.json credentials-prod.json .netrc
"""
HARMLESS = """
    .env.example .env.sample .env.template .env.dist .env.local.example env .envrc environment.py
    id_rsa.pub id_deploy.pub id_map.py src/id_token.go identity valid_rsa
    credentials.py credentials.example.json credentials.schema.json pem.py .npmrc
"""


@pytest.mark.parametrize("path", SECRET.split())
def test_secret(path: str) -> None:
    assert input_changes.secret(path) == path


@pytest.mark.parametrize("path", HARMLESS.split())
def test_no_secret(path: str) -> None:
    assert input_changes.secret(path) is None


def test_a_program_may_be_called_like_a_key() -> None:
    assert input_changes.secret("bin/id_list", executable=True) is None
    assert input_changes.secret("bin/.netrc", executable=True) == "bin/.netrc"


def test_an_environment_called_env_is_one_thing_to_decide() -> None:
    assert input_changes.secret("api/.env/lib/python3/site.py") == "api/.env"


@pytest.mark.parametrize(
    ("content", "has_it"),
    [
        (b"//registry/:_authToken=abc", True),
        (b"_PASSWORD = abc", True),
        (b"//registry/:_authToken=${NPM_TOKEN}", False),
        (b"_auth=\nsave-exact=true", False),
    ],
)
def test_a_token_of_npm(content: bytes, *, has_it: bool) -> None:
    assert input_changes.has_npm_token(content) is has_it


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"-----BEGIN OPENSSH PRIVATE KEY-----", "a private key"),
        (b"-----BEGIN PRIVATE KEY-----", "a private key"),
        (b"id = AKIAABCDEFGHIJKLMNOP", "an AWS key"),
        (b"ghp_" + b"a1B2" * 9, "a GitHub token"),
        (b"xoxb-123456789012-abc", "a Slack token"),
        (b"sk-ant-" + b"x" * 20, "a key of a model's provider"),
        (b"-----BEGIN CERTIFICATE-----", None),
        (b"task-001 disk-full-and-quite-empty", None),
        (b"the sk-prefix", None),
    ],
)
def test_what_looks_like_a_key(content: bytes, kind: str | None) -> None:
    assert input_changes.key_in(content) == kind
