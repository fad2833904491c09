"""The examples of docs/agent-loop.md work as they stand there."""

from __future__ import annotations

import html
import json
import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from harness_lib.loop import disk, hosted, keys
from tests.conftest import CHECKOUT
from tests.docs.pages import block, page
from tests.loop.servers.openai import OpenAI
from tests.loop.servers.script import ModelServer, say, use
from tests.run_to_end import run_to_end
from tests.system.git.gitrepo import put

PAGE = page("agent-loop.md")


def example(heading: str, language: str) -> str:
    return block("docs/agent-loop.md", heading, language)


def test_tool_hook_and_provider_work_as_written(home: Path, tmp_path: Path) -> None:
    server = ModelServer(OpenAI, [use("count_lines", path="poem"), say("Three.")])
    source = home / ".harness"
    files = {
        "tools/count_lines": example("A tool", "python"),
        "hooks.d/done/50-log": example("A hook", "sh"),
        "providers/ours.conf": example("A provider", "conf").replace("http://127.0.0.1:8080", server.address),
    }
    for name, text in files.items():
        put(source / name, text, executable=True)
    put(tmp_path / "poem", "a\nb\nc\n")

    done = run_to_end(
        [sys.executable, "-m", "harness_lib.hs", "count"],
        env={**os.environ, "OUR_KEY": "k", "HARNESS_PROVIDER": "ours"},
    )
    server.shutdown()
    server.server_close()

    assert (done.returncode, done.stdout) == (0, "Three.\n"), done.stderr
    (session,) = (source / "sessions").iterdir()
    assert (session / "messages/0003-tool_result.md").read_text().endswith("---\n3\n")
    assert json.loads((session / "answers.jsonl").read_text()) == {"output": "Three."}
    assert server.refusals == []


def test_skill_and_command_work_as_written(home: Path, tmp_path: Path) -> None:
    heading = "Prompts, skills, commands"
    put(home / ".harness/skills/release/SKILL.md", example(heading, "markdown"))
    put(home / ".harness/commands/spent", example(heading, "sh"), executable=True)
    requests = typed(tmp_path, ["hs /release 1.2", "hs spent", "hs help | grep 'spent  *Say what'"])
    assert f"Make the release 1.2: first run the tests, then `{home}/.harness" in str(requests)


def test_the_commands_of_readme_work_word_for_word(tmp_path: Path) -> None:
    lines = block("README.md", "`hs`: an agent of its own").replace("bin/hs", "hs").splitlines()

    requests = typed(tmp_path, lines[1:])

    assert "it broke" in str(requests[1])


@pytest.mark.release
def test_the_commands_of_the_page_work_word_for_word(home: Path, tmp_path: Path) -> None:
    lines = example("Use", "sh").splitlines()[1:]
    session = home / ".harness/sessions/20260324-143022-12345"
    (session / "messages").mkdir(parents=True)
    put(session / "session.conf", f"id={session.name}\n")
    more = re.findall(r"^\| `(--[a-z-]+ ?[A-Za-z,]*)`", example_of_options(), re.MULTILINE)
    known = {"M": "m", "N": "3", "USD": "1", "auto": "auto", "a,b": "bash", "NAME": "MY_KEY"}
    known |= {"TEXT": "'Be brief.'", "ID": session.name}

    options = [
        f"hs {name} {known[value]} words" for name, value in (each.split() for each in more if " " in each)
    ]
    flags = ["hs -p words", "hs --json words", "hs -- --words", "hs --provider openai words"]
    requests = typed(
        tmp_path, [*lines, *options, *flags, "echo log | hs 'why?' -", "hs resume on", "hs doctor"]
    )

    assert len(options) > 4
    assert "Be brief." in str(requests)
    assert "go on" in str(requests)


def example_of_options() -> str:
    return PAGE.split("| option of a task |")[1].split("\n\n")[0]


def typed(place: Path, lines: list[str]) -> list[dict[str, object]]:
    """Type each of the commands; return what the model's server was asked."""
    server = ModelServer(OpenAI, [say("An answer.")])
    (place / "log").write_text("it broke\n")
    program = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m harness_lib.hs "$@"\n'
    put(place / "hs", program, executable=True)
    env = {"OPENAI_API_URL": f"{server.address}/v1/chat/completions", "PATH": f"{place}:{os.environ['PATH']}"}
    for line in lines:
        if line.partition("#")[0].strip() == "hs":
            # It wants a terminal: tests/hs/repl/test_conversation.py talks to it on one.
            continue
        done = run_to_end(["sh", "-c", line], env={**os.environ, **env}, stdin="")
        assert done.returncode == 0, f"{line}: {done.stderr}"
        # Who serves a client is silent until it is asked, and nobody asks here.
        assert done.stdout or line.startswith("hs acp")
    server.shutdown()
    server.server_close()
    return server.requests


def test_the_login_of_the_page_is_one() -> None:
    written = PAGE.split("\n### A login\n")[1].split("```conf\n")[1].split("```")[0]
    config = hosted.OPENAI._replace(name="ours", values=disk.parse_conf(written))

    keys.check_login(config)
    assert config.values["redirect_port"] == "1455"


def test_every_file_of_the_picture_is_there() -> None:
    library = CHECKOUT / "harness_lib"
    picture = example("How it is built", "text")

    assert [name for name in re.findall(r"[\w/]+(?:\.py|/)", picture) if not (library / name).exists()] == []


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("hs-edit.svg", ["attached: calc.py", "-    return a - b", "+    return a + b", "or say why not:"]),
        ("hs-live.svg", ["There is no /cots. Did you mean /cost?", "test_double PASSED", "Ctrl-C: stop"]),
    ],
)
def test_the_pictures_show_what_the_page_says(name: str, seen: list[str]) -> None:
    """They load no font and no picture of another host."""
    picture = page(name)
    shown = " ".join(html.unescape(re.sub(r"<[^>]+>", "", picture)).replace("\u00a0", " ").split())

    assert f"({name})" in PAGE
    assert all(" ".join(text.split()) in shown for text in seen)
    assert "url(" not in picture.replace("url(#", "")
