"""An agent whose commands run in a sandbox of their own: nobody outside sees a process that stands for it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest

from harness_lib.system.place import own_files
from tests.conftest import CHECKOUT
from tests.run_to_end import run_to_end
from tests.verbs.project import Agent, Project

SANDBOX = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
ID = "01a1ffcb-0ed1-7db0-b07b-9e5563b8bc59"


def _works() -> bool:
    try:
        return subprocess.run([*SANDBOX, "true"], check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


pytestmark = pytest.mark.skipif(not _works(), reason="this machine makes no pid namespaces for its users")


def sandboxed(project: Project, *argv: str) -> subprocess.CompletedProcess[str]:
    """Type `harness ARGV` as Codex does, in a sandbox that ends with the command."""
    line = " ".join([shlex.quote(sys.executable), "-m", "harness_lib", *argv])
    return run_to_end(
        [*SANDBOX, "sh", "-c", f"{line}; exit $?"],
        cwd=project.top,
        env={**os.environ, "CODEX_SESSION_ID": ID, "PYTHONPATH": str(CHECKOUT)},
    )


@pytest.fixture
def sandbox(project: Project, agent: Agent) -> Project:
    """Return a project on whose one task a sandboxed agent works."""
    agent.ok("add", "One", "--validate", "test -f done")
    claimed = sandboxed(project, "claim")
    assert claimed.returncode == 0, claimed.stderr
    return project


def test_its_session_is_named_by_the_id_alone_and_goes_on_from_command_to_command(sandbox: Project) -> None:
    (session,) = sandbox.state["sessions"]
    assert (session["worker"], session["agent_session_id"], session["pid"]) == (ID, ID, None)
    sandbox.put("done")

    finished = sandboxed(sandbox, "finish")

    assert finished.returncode == 0, finished.stderr
    assert sandbox.state["session_count"] == 1


def test_while_it_gives_signs_of_life_nobody_takes_its_list(sandbox: Project) -> None:
    assert "in a sandbox" in sandbox.agent("other").fails(5, "start")["error"]["message"]
    sandbox.clock.pass_(minutes=25)
    sign = own_files.note_path(str(sandbox.top), "seen", ID)
    now = sandbox.clock.time()
    os.utime(sign, (now, now))
    sandbox.clock.pass_(minutes=25)

    sandbox.agent("other").fails(5, "start")


def test_half_an_hour_after_its_last_sign_the_list_is_free_and_its_work_goes_on(sandbox: Project) -> None:
    sandbox.put("half.txt")
    sandbox.clock.pass_(minutes=31)

    sandbox.agent("other").ok("start")

    assert (sandbox.task()["claimed_by"], sandbox.task()["attempts"]) == ("other", 0)
    assert (sandbox.top / "half.txt").exists()


def test_doctor_takes_no_process_of_ours_for_it(sandbox: Project) -> None:
    assert "living process 1" not in sandbox.agent("other")("doctor").text
