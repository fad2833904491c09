"""Plugins are found anew for every request and behind every tool."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from harness_lib.loop import discovery
from harness_lib.loop.runtime import Key, Runtime
from tests.loop.conftest import ANTHROPIC, CHAT, Done, Follow, Hs, session_of
from tests.loop.in_process import begun, results_of
from tests.loop.servers.script import Quiet, Step, Use, bash, say, use
from tests.loop.source_files import at_home, write, write_script
from tests.run_to_end import run_to_end

PLACES: list[tuple[str, Key]] = [
    ("commands/greet", ("commands", "", "greet")),
    ("tools/greet", ("tools", "", "greet")),
    ("providers/greet", ("providers", "", "greet")),
    ("hooks.d/start/greet", ("hooks.d", "start", "greet")),
    ("plugins/pack/tools/greet", ("tools", "", "greet")),
]


@pytest.fixture
def run(home: Path, project: Path) -> Runtime:
    """Return a run whose home holds a hook and is of yesterday: such a directory is read once."""
    write_script("hooks.d/done/50-log", "cat")
    for directory in (home / ".harness", home / ".harness/hooks.d", home / ".harness/hooks.d/done"):
        os.utime(directory, (1_700_000_000, 1_700_000_000))
    run = begun(project)
    discovery.refresh(run)
    return run


@pytest.mark.parametrize(("place", "key"), PLACES, ids=[place for place, _ in PLACES])
def test_a_plugin_of_a_directory_that_was_not_there_is_found_and_forgotten(
    run: Runtime, place: str, key: Key
) -> None:
    plugin = write(place, "#!/bin/sh\n", 0o755)
    discovery.refresh(run)
    assert run.table.entries[key].origin == str(plugin)
    assert [each.name for each in run.table.of(key[0], key[1])].count("greet") == 1

    plugin.chmod(0o644)
    discovery.refresh(run)
    assert key not in run.table.entries

    plugin.chmod(0o755)
    discovery.refresh(run)
    assert key in run.table.entries

    shutil.rmtree(at_home() / Path(place).parts[0])
    discovery.refresh(run)
    assert key not in run.table.entries


def test_a_plugin_that_a_tool_writes_counts_from_the_next_call_on(follow: Follow) -> None:
    gate = at_home("hooks.d/tool_gate/10-no")
    no = 'echo "{\\"decision\\":\\"deny\\",\\"reason\\":\\"closed\\"}"'
    written = f"mkdir -p '{gate.parent}'; printf '#!/bin/sh\\n%s\\n' '{no}' > '{gate}'; chmod +x '{gate}'"
    both = (Use("bash", {"command": written}), Use("bash", {"command": "echo second"}))

    run, _, _ = follow(CHAT, Step(uses=both), say("Done."))

    assert results_of(run) == ["", "error: denied: closed"]


# -- the example hook and the example tool work where a user copies them to


EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def _copied(example: str, source: Path) -> None:
    (source / example).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(EXAMPLES / example, source / example)


class _Page(Quiet):
    def do_GET(self) -> None:
        found = self.path == "/page"
        text = "<style>p {}</style><p>Grüße &amp; <b>more</b></p>" if found else ""
        self.send(200 if found else 404, "text/html; charset=utf-8", text.encode())


@pytest.fixture
def web() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_the_cost_of_each_answer_is_noted_and_the_turn_goes_on(done: Done) -> None:
    _copied("hooks.d/receive/20-cost", at_home())

    done(bash("echo hello"), say("Done."), wire=ANTHROPIC)

    rows = at_home("cost.tsv").read_text().splitlines()
    assert len(rows) == 2
    for row in rows:
        _, session, model, tokens_in, tokens_out, _ = row.split("\t")
        assert session == session_of().name
        assert model
        assert int(tokens_in) > 0
        assert int(tokens_out) > 0


def test_after_ten_thousand_messages_the_cost_is_still_that_of_the_last_answer(tmp_path: Path) -> None:
    for number in ("9999", "10001"):
        text = f"---\nrole: assistant\ntokens_in: {number}\n---\nHello.\n"
        write(tmp_path / "messages" / f"{number}-assistant.md", text)
    env = {**os.environ, "HARNESS_SESSION": str(tmp_path), "HARNESS_HOME": str(tmp_path)}

    run_to_end([EXAMPLES / "hooks.d/receive/20-cost"], env=env, stdin="{}", check=True)

    assert "\t10001\t" in (tmp_path / "cost.tsv").read_text()


def test_a_project_has_a_tool_that_fetches_pages(done: Done, hs: Hs, project: Path, web: str) -> None:
    _copied("tools/web_fetch", project / ".harness")
    assert hs("trust").code == 0
    calls = [use("web_fetch", url=url) for url in (f"{web}/page", f"{web}/gone", "file:///etc/passwd")]

    server, _ = done(*calls, say("Done."), wire=ANTHROPIC)

    told = [str(request["messages"][-1]) for request in server.requests[1:]]
    assert "Grüße & more" in told[0]
    assert "<" not in told[0]
    assert "404" in told[1]
    assert "Not an address of the web" in told[2]
