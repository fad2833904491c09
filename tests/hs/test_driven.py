"""`harness run` with `hs`: briefs in, events out, a failed attempt, and a usage limit that is no attempt."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.loop.servers.openai import OpenAI
from tests.loop.servers.script import ModelServer, Step, bash, say
from tests.runs.workshop import Workshop


class Model(ModelServer):
    """Does what the title of a task says, by a call, then a word; else as `lazy` and `limited` say."""

    def __init__(self) -> None:
        super().__init__(OpenAI, [])
        self.lazy: set[str] = set()
        self.limited: set[str] = set()

    def next_step(self, body: dict[str, Any], headers: dict[str, str]) -> Step:
        self.requests.append(body)
        self.headers.append(headers)
        brief = next(message["content"] for message in body["messages"] if message["role"] == "user")
        name = next(name for name in ("one", "two", "three") if f"Make {name}" in brief)
        if name in self.limited:
            hours = (("retry-after", "7200"),)
            return Step(status=429, said="You have hit your usage limit.", headers=hours)
        if name in self.lazy:
            self.lazy.remove(name)
            return say("I think it is done.")
        if body["messages"][-1]["role"] == "tool":
            return say(f"Made {name}.")
        return bash(f"echo done > {name}")


@pytest.fixture
def model() -> Iterator[Model]:
    with Model() as server:
        yield server


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Workshop]:
    workshop = Workshop.make(tmp_path, mode="concurrent")
    yield workshop
    workshop.close()


def environment_of(model: Model, place: Path) -> dict[str, str]:
    """Return one in which `hs` is the only agent on the PATH, and has a provider."""
    programs = place / "bin"
    programs.mkdir(exist_ok=True)
    hs = programs / "hs"
    hs.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m harness_lib.hs "$@"\n')
    hs.chmod(hs.stat().st_mode | stat.S_IXUSR)
    return {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "OPENAI_API_URL": f"{model.address}/v1/chat/completions",
        "NO_PROXY": "127.0.0.1",
    }


def test_a_list_is_worked_off_with_a_failure_and_a_limit_on_the_way(
    model: Model, workshop: Workshop, tmp_path: Path
) -> None:
    env = environment_of(model, tmp_path)
    one = workshop.add("Make one", "grep -q done one")
    two = workshop.add("Make two", "grep -q done two")
    three = workshop.add("Make three", "grep -q done three", "--depends-on", f"{one},{two}")
    model.lazy, model.limited = {"two"}, {"three"}

    run = workshop.start("-j", "2", agent=None, **env)
    workshop.wait_for("the limit", lambda: "usage limit" in workshop.printed)
    run.send_signal(signal.SIGINT)
    workshop.wait_for("the first Ctrl-C", lambda: "Ctrl-C again" in workshop.printed)
    run.send_signal(signal.SIGINT)
    run.wait(timeout=200)
    attempts = {name: workshop.task(name)["attempts"] for name in (one, two, three)}
    spent = json.loads(workshop.harness("budget", "--json").stdout)
    model.limited = set()
    again = workshop.harness("run", "-j", "2", **env)

    assert attempts == {one: 0, two: 1, three: 0}
    assert again.returncode == 0, again.stdout + again.stderr
    assert set(workshop.statuses().values()) == {"completed"}
    assert spent
    assert "goes on at" in workshop.printed
    workshop.done_is_done()
