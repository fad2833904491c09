"""A legacy agent with the lock directory keeps us out, and our sessions and changes keep it out."""

from __future__ import annotations

import pytest

from harness_lib.system import mkdir_lock
from tests.protocol.clocks import Hurried, Impatient
from tests.protocol.conftest import LegacyIn
from tests.protocol.legacy_agent import ActiveError, LegacyAgent, is_alive
from tests.verbs.conftest import Make
from tests.verbs.project import Agent, Project


@pytest.mark.parametrize(
    "verb", [("add", "Late"), ("start",), ("claim",), ("stop",)], ids=lambda verb: verb[0]
)
def test_while_the_legacy_protocol_has_it_we_wait(
    make_project: Make, legacy_in: LegacyIn, verb: tuple[str, ...]
) -> None:
    """Exit 5 after 30 seconds, naming the process."""
    project = make_project()
    project.agent("person").ok("add", "Something", "--validate", "true")
    project.clock = Hurried()
    before, legacy = project.file.read_bytes(), legacy_in(project.top)
    legacy.lock()

    reply = project.agent().fails(5, *verb)

    assert legacy.holder is not None
    assert f"pid {legacy.holder.pid} since 20" in reply["error"]["message"]
    assert project.clock.slept >= 30
    assert project.file.read_bytes() == before
    assert is_alive(legacy.holder.pid)


def test_a_change_waits_for_the_legacy_protocol_and_builds_on_what_it_wrote(
    project: Project, legacy: LegacyAgent
) -> None:
    project.agent("person").ok("add", "Something")
    legacy.lock()

    def finish_and_let_go() -> None:
        legacy.edit("task-001", title="Theirs")
        legacy.unlock()

    project.clock = Hurried(finish_and_let_go)

    assert project.agent().ok("add", "Ours")["task"]["id"] == "task-002"
    assert [task["title"] for task in project.state["tasks"]] == ["Theirs", "Ours"]


def test_our_open_session_is_named_by_the_recipe(project: Project, agent: Agent, legacy: LegacyAgent) -> None:
    """Between our commands, from anywhere in the project; the moment the session ends it succeeds."""
    agent.ok("add", "Something", "--validate", "true")
    agent.ok("start")
    (project.top / "below").mkdir()

    for place in (project.top, project.top / "below"):
        with pytest.raises(ActiveError, match=f"^active {agent.process.pid}$"):
            legacy.lock(cwd=place)
    agent.ok("claim")
    with pytest.raises(ActiveError, match=f"^active {agent.process.pid}$"):
        legacy.lock()

    agent.ok("stop")
    assert legacy.lock() == "taken"


def test_in_concurrent_mode_our_session_keeps_nobody_out(make_project: Make, legacy_in: LegacyIn) -> None:
    project = make_project(mode="concurrent")
    agent = project.agent()
    agent.ok("add", "Something", "--validate", "true")
    agent.ok("claim")

    assert legacy_in(project.top).lock() == "taken"


def test_a_lock_of_a_dead_agent_of_the_legacy_protocol_is_ours(
    project: Project, agent: Agent, legacy: LegacyAgent
) -> None:
    legacy.lock()
    legacy.crash()
    project.clock = Impatient()

    agent.ok("add", "Something")

    assert mkdir_lock.holder_of(mkdir_lock.path_for(project.top)) is None


def test_a_session_of_the_dead_is_taken_by_the_legacy_protocol(
    project: Project, agent: Agent, legacy: LegacyAgent
) -> None:
    """When we come back, our dead session is noticed, and that of the legacy agent is in the way."""
    agent.ok("add", "Something", "--validate", "true")
    agent.ok("start")
    dead = agent.process.pid
    agent.die()

    assert legacy.lock() == f"reclaimed {dead}"

    project.clock = Hurried()
    late = project.agent("late")
    assert legacy.holder is not None
    assert f"pid {legacy.holder.pid} " in late.fails(5, "start")["error"]["message"]
    legacy.unlock()
    assert late.ok("start")["session"] == 2
    assert project.grep("WARN", f"(pid {dead}) is gone")


def test_looking_takes_no_lock(project: Project, agent: Agent, legacy: LegacyAgent) -> None:
    """Somebody holds it all the while, and the same bytes stand there afterwards."""
    agent.ok("add", "Something", "--validate", "true")
    legacy.lock()
    before = project.file.read_bytes()
    looker = project.agent("looker")
    looker.clock = Impatient()

    for verb in (("status",), ("log",), ("graph",), ("show", "task-001")):
        looker.ok(*verb)

    assert project.file.read_bytes() == before
