"""The lines of docs/many-machines.md lead from one machine to three."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.docs.pages import page
from tests.machines.world import Machine, World
from tests.system.git.gitrepo import put, sh

URL, REMOTE = "postgresql://me@db.example.org/agents", "git@git.example.org:me/shop.git"


def blocks() -> list[list[str]]:
    """Return the lines of each block of the page that is typed."""
    found = re.findall(r"```sh\n(.*?)```", page("many-machines.md"), re.DOTALL)
    return [text.splitlines() for text in found]


def type_(machine: Machine, world: World, line: str) -> None:
    words = [
        {URL: world.url, "shop": world.name, REMOTE: str(world.remote)}.get(word, word)
        for word in shlex.split(line)
    ]
    if words[:2] == ["harness", "run"]:
        machine.ends(0, *words[2:])
    elif words[0] == "harness":
        machine.ok(*words[1:], *(["--yes"] if words[1] == "trust" else []), HARNESS_TRUST="1")
    elif words[:2] == ["git", "clone"]:
        sh(machine.top.parent, "clone", "-q", str(world.remote), str(machine.top))
    else:
        machine.sh(*words[1:])


def test_the_lines_lead_from_one_machine_to_three(world: World, tmp_path: Path) -> None:
    first, further = blocks()
    assert len(first) + len(further) <= 10
    top = tmp_path / "one/project"
    sh(tmp_path, "clone", "-q", str(world.remote), str(top))
    one = Machine(top, tmp_path / "one/home", name="one")
    one.ok("init")
    tasks = [one.file_task("file-1")]
    for line in first:
        type_(one, world, line)
    for name in ("two", "three"):
        (tmp_path / name).mkdir()
        tasks.append(one.file_task(f"file-{name}"))
        machine = Machine(tmp_path / name / "project", tmp_path / name / "home", name=name)
        put(machine.home / "note", "")
        for line in further:
            type_(machine, world, line)
        world.machines.append(machine)
    world.each_once(*tasks)
