"""Plugins are found anew for every request and behind every tool."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from harness_lib.loop import discovery
from harness_lib.loop.runtime import Key, Runtime
from tests.loop.conftest import CHAT, Follow
from tests.loop.in_process import begun, results_of
from tests.loop.servers.script import Step, Use, say
from tests.loop.source_files import at_home, write, write_script

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
