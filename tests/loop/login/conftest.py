"""A provider with a login: its authorization server, its host of models, and its `.conf`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.loop.login.hosted import describe
from tests.loop.servers.oauth import AuthServer
from tests.loop.servers.openai import OpenAI
from tests.loop.servers.script import ModelServer, say


@pytest.fixture
def auth() -> Iterator[AuthServer]:
    server = AuthServer()
    yield server
    server.gate.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def model() -> Iterator[ModelServer]:
    server = ModelServer(OpenAI, [say("Hello.")])
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def provider(home: Path, auth: AuthServer, model: ModelServer) -> Path:
    """Describe a provider `hosted` that has a login; its servers are ours."""
    return describe(home, auth, model)
