"""`harness run` lets the real clients work, two at once, through faults to the end of the list.

One agent is killed, one does its task wrong at first, one meets its usage limit: nobody has to see to it.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from harness_lib.system.processes import engines, sandbox
from tests.hosts.agents import launcher
from tests.hosts.claude import Claude
from tests.hosts.codex import Codex
from tests.hosts.machine import Machine
from tests.hosts.model import Model
from tests.hosts.talk import Actor, Call, Refusal, Request, Say, Script

CEILING = "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS"
DONE = Say("Done.")
NOTE = "One is written in small letters."
MINUTE = timedelta(minutes=1)

Event = dict[str, Any]


class Limit:
    """The usage limit of a provider, which is met at once and ends soon: `end` says when, as of now."""

    def __init__(self, end: Callable[[datetime], datetime], refusal: Callable[[int], Refusal]) -> None:
        self.refused = 0
        self._end, self._refusal = end, refusal

    def __call__(self, request: Request) -> Script:
        """Play the agent that meets it, and the one that goes on when it is over."""
        end = self._end(_now())
        while _now() < end:
            self.refused += 1
            request = yield self._refusal(int(end.timestamp()))
        yield from makes_three(request)


def makes_three(request: Request) -> Script:
    """Play the agent that works with git, npm and pip first, where this machine has the script for it."""
    work = "test ! -e ~/work.sh || sh -ex ~/work.sh > ~/.cache/work 2>&1"
    request = yield request.shell(f"{work}; echo worked: $? | tee -a ~/.cache/work")
    while "worked: " not in request.last:
        # Codex goes on after ten seconds.
        request = yield request.shell("sleep 2; cat ~/.cache/work")
    assert "worked: 0" in request.last, request.last
    yield request.shell("echo three > three")
    yield DONE


def is_killed(request: Request) -> Script:
    """Play the agent that dies in the middle, and the one that goes on with what it left."""
    harness = launcher(request.said_by("user"))
    half = f"echo half > one; {harness} checkpoint task-001 1/2 'Half of it'; kill -9 $PPID"
    request = yield request.shell(half)
    assert "An agent before you worked on this and ended" in request.said_by("user")
    assert "last checkpoint: 1/2 Half of it" in request.said_by("user")
    request = yield request.shell(f"{harness} note task-001 '{NOTE}'")
    # In a sandbox the run records it later.
    assert "for task-001" in request.last, request.last
    yield request.shell("grep -qx half one && echo one > one")
    yield DONE


def is_wrong_at_first(request: Request) -> Script:
    """Play the agent that ends its turn too early, and the one that is told of it."""
    assert f"- task-001: {NOTE}" in request.said_by("user")
    yield request.shell("echo wrong > two")
    request = yield DONE
    assert "last failure: [TEST_FAIL]" in request.said_by("user")
    request = yield request.shell("git show refs/harness/rescue/task-002/1:two")
    assert "wrong" in request.last
    yield request.shell("cp one two")
    yield DONE


def add_tasks(machine: Machine) -> None:
    """Make the list: two tasks can be done at once, the other one comes after the first."""
    machine.add("Make one", "--validate", "grep -qx one one")
    machine.add("Make two", "--validate", "cmp one two", "--depends-on", "task-001")
    machine.add("Make three", "--validate", "grep -qx three three")


# No registry is in reach. A wheel is an archive, so that pip needs nothing to build it with.
WORK = """
begin=$(git rev-parse HEAD); git switch -qc side; echo side > side; git add side; git commit -qm Side
git switch -q --detach $begin; git merge -q side; git stash list
cd "$(mktemp -d)"; mkdir pkg; echo 'module.exports = 3' > pkg/made.js
echo '{"name": "made", "version": "1.0.0", "main": "made.js"}' > pkg/package.json
npm pack --silent ./pkg; npm install --silent --offline ./made-1.0.0.tgz
node -e 'process.exit(require("made") - 3)'
mkdir made-1.0.dist-info; touch made.py made-1.0.dist-info/RECORD
printf 'Metadata-Version: 2.1\\nName: made\\nVersion: 1.0\\n' > made-1.0.dist-info/METADATA
printf 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n' > made-1.0.dist-info/WHEEL
python3 -m zipfile -c made-1.0-py3-none-any.whl made.py made-1.0.dist-info
PYTHON -m pip install -q --no-index --target installed ./made-1.0-py3-none-any.whl
PYTHONPATH=installed PYTHON -c 'import made'
""".replace("PYTHON ", f"{shlex.quote(sys.executable)} ")


@pytest.fixture(params=["off", *(pytest.param(each, marks=pytest.mark.release) for each in engines.ENGINES)])
def confined(request: pytest.FixtureRequest, machine: Machine) -> tuple[str, ...]:
    """Return the options of a run: its sandbox. In one, there is more to do."""
    if request.param != "off" and sandbox.find(os.environ, [request.param])[0] is None:
        pytest.skip("it does not start here")
    if request.param != "off":
        (machine.home / "work.sh").write_text(WORK)
    return ("--sandbox", request.param)


@pytest.mark.release
def test_claude_code(claude: Claude, model: Model, machine: Machine, confined: tuple[str, ...]) -> None:
    """What it says that it has cost is added up."""
    add_tasks(machine)

    def refusal(end: int) -> Refusal:
        quota = {"status": "rejected", "reset": str(end), "representative-claim": "five_hour"}
        headers = {f"anthropic-ratelimit-unified-{name}": value for name, value in quota.items()}
        error = {"type": "rate_limit_error", "message": "Please try again later."}
        return Refusal(429, {"type": "error", "error": error}, headers)

    env = {**claude.env, "CLAUDE_CODE_OAUTH_TOKEN": "dummy"}
    del env["ANTHROPIC_API_KEY"]
    limit = Limit(lambda now: now.replace(microsecond=0) + timedelta(seconds=4), refusal)

    spent = run(machine, model, limit, "--agent", "claude", *confined, env=env)

    assert spent["cost_usd"] > 0
    assert spent["tokens"] > 0


@pytest.mark.release
def test_claude_code_waits_for_its_background_agents(claude: Claude, model: Model, machine: Machine) -> None:
    """By itself it ends them after ten minutes; what a run tells it is that there is no such end.

    Here its own ten minutes are one second, so that the run's word is what lets the subagent come to its end.
    """
    machine.add("Make one", "--validate", "grep -qx one one")

    def delegates(request: Request) -> Script:
        request = yield request.shell(f"printenv {CEILING}")
        assert request.last.strip() == "0"
        work = {"description": "work", "prompt": "MAKE ONE SLOWLY", "subagent_type": "general-purpose"}
        yield Say(calls=(Call("Agent", {**work, "run_in_background": True}),))
        yield Say("I wait.")
        yield DONE

    model.play(delegates, when="task-001 [P1] attempt")
    model.play(_slowly, when="MAKE ONE SLOWLY")

    machine.harness("run", "--agent", "claude", env={**claude.env, CEILING: "1000"}).check()

    (task,) = machine.state["tasks"]
    assert (task["status"], task["attempts"]) == ("completed", 0)


def _slowly(request: Request) -> Script:
    """Play the subagent, whose work takes longer than the ceiling."""
    yield request.shell("sleep 5; echo one > one")
    yield DONE


@pytest.mark.release
def test_codex(codex: Codex, model: Model, machine: Machine, confined: tuple[str, ...]) -> None:
    """It tells only the minute in which a limit ends, so it lives where a minute of the clock ends soon."""
    add_tasks(machine)
    # An agent that asks only later has a minute more to wait.
    soon = _now().replace(microsecond=0) + timedelta(seconds=13)

    def end(now: datetime) -> datetime:
        return soon if now < soon else soon + ((now - soon) // MINUTE + 1) * MINUTE

    def refusal(end: int) -> Refusal:
        error = {"type": "usage_limit_reached", "plan_type": "plus", "resets_at": end}
        return Refusal(429, {"type": "error", "error": error})

    env = {**codex.env, "TZ": f"HERE-0:00:{-soon.second % 60:02}"}
    # Its sandbox needs a kernel that lets it, and inside it could not kill itself; ours replaces it.
    own = [] if confined[1] != "off" else ["--agent-arg=--sandbox=danger-full-access"]
    words = ("--agent", "codex", *own, *confined)

    spent = run(machine, model, Limit(end, refusal), *words, env=env)

    assert spent["tokens"] > 0


@pytest.mark.release
def test_hs(model: Model, machine: Machine, confined: tuple[str, ...]) -> None:
    """Inside the sandbox of a run it starts none of its own."""
    add_tasks(machine)
    for number, actor in enumerate((is_killed, is_wrong_at_first, makes_three), 1):
        model.play(actor, when=f"task-00{number} [P1] attempt")
    env = {"HARNESS_PROVIDER": "anthropic", "ANTHROPIC_API_KEY": "dummy"}
    env |= {"ANTHROPIC_API_URL": f"{model.address}/v1/messages"}

    machine.harness("run", "-j", "2", "--agent", "hs", *confined, env=env).check()

    assert machine.statuses == ["completed"] * 3
    assert_landed(machine)


@pytest.mark.release
def test_in_the_sandbox_of_codex_notes_do_arrive(codex: Codex, model: Model, machine: Machine) -> None:
    """There only the work tree can be written; without these words, /tmp as well, where the project is."""
    machine.add("Make one", "--validate", "grep -qx one one")

    def works(request: Request) -> Script:
        harness = launcher(request.said_by("user"))
        request = yield request.shell(f"touch {machine.project}/mine; {harness} note task-001 '{NOTE}'")
        assert "Read-only file system" in request.last
        assert "left for the run" in request.last
        request = yield request.shell(f"{harness} checkpoint task-001 1/2 'Half of it'; echo one > one")
        assert "left for the run" in request.last, request.last
        yield DONE

    model.play(works, when="task-001 [P1] attempt")
    closed = [f"sandbox_workspace_write.exclude_{name}=true" for name in ("slash_tmp", "tmpdir_env_var")]
    words = [f"--agent-arg={word}" for each in closed for word in ("-c", each)]

    machine.harness("run", "--agent", "codex", *words, env=codex.env).check()

    (task,) = machine.state["tasks"]
    assert (task["status"], task["attempts"], task["notes"]) == ("completed", 0, [NOTE])
    assert [each["description"] for each in task["checkpoints"]] == ["Half of it"]


def run(machine: Machine, model: Model, limit: Limit, *words: str, env: Mapping[str, str]) -> Event:
    """Let two agents at once do three tasks; return what that took, if all went as it should."""
    actors: list[Actor] = [is_killed, is_wrong_at_first, limit]
    for number, actor in enumerate(actors, 1):
        model.play(actor, when=f"task-00{number} [P1] attempt")

    ran = machine.harness("run", "-j", "2", "--json", *words, env=env)

    *events, reply = ran.check().events
    assert_survived(events)
    assert limit.refused == 1, "asked again before the limit was over"
    assert (reply["ok"], machine.statuses) == (True, ["completed"] * 3)
    assert [task["attempts"] for task in machine.state["tasks"]] == [0, 1, 0]
    assert_landed(machine)
    return dict(reply["spent"])


def assert_survived(events: list[Event]) -> None:
    """Fail unless nothing was told but what was meant to happen."""
    ended = [(event["task"], event["status"]) for event in events if event["event"] == "ended"]
    done = [(f"task-00{number}", "completed") for number in (1, 2, 3)]
    assert sorted(ended) == sorted([*done, ("task-002", "failed")])
    waits = [event["message"] for event in events if event.get("until")]
    killed, limited = sorted(waits, key=lambda message: "limit" in message)
    assert killed.startswith("the agent ended with ")
    assert "{" not in killed
    assert "hit your" in limited
    assert not any(event["code"] for event in events if event["event"] == "gone")


def assert_landed(machine: Machine) -> None:
    """Fail unless each task is a commit on the branch, and nothing else is left of the run."""
    made = ["Begin", "[task-001] Make one", "[task-002] Make two", "[task-003] Make three"]
    # The last one is a commit of an agent's own.
    assert sorted(set(machine.subjects) - {"Side"}) == sorted(made)
    assert (machine.project / "two").read_text() == "one\n"

    def git(*words: str) -> list[str]:
        return machine.run("git", *words).check().out.splitlines()

    assert len(git("worktree", "list")) == 1
    assert git("for-each-ref", "--format=%(refname)", "refs/heads") == ["refs/heads/main"]
    assert git("status", "--porcelain", "--untracked-files=all") == []
    assert list(machine.harness_home.glob("worktrees/*/*")) == []
    assert machine.state["sessions"] == []


def _now() -> datetime:
    return datetime.now(timezone.utc)
