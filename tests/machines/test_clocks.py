"""A machine whose clock is wrong works and reports like any other: the clock of the database decides."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness_lib import timestamps
from tests.machines.world import Machine
from tests.runs.forking import AHEAD
from tests.system.git.gitrepo import put

YEAR = 365 * 24 * 3600
SAY = "say " + json.dumps({"cost_usd": 0.5, "tokens": 1200})


def ends(machine: Machine, code: int, ahead: int, *argv: str) -> list[dict[str, Any]]:
    """Let a run go on to its end, and return what it says of the tasks that it has worked on."""
    said = machine.ends(code, "--json", *argv, **{AHEAD: f"{ahead}"})
    tasks: list[dict[str, Any]] = json.loads(said.stdout.splitlines()[-1])["tasks"]
    return tasks


@pytest.mark.parametrize("ahead", [-YEAR, YEAR])
def test_each_attempt_is_reported_once(one: Machine, ahead: int) -> None:
    """And the final check has the date of the list."""
    task = one.add("Make a", "grep -q done a", do=f"{SAY} ;; write a done")

    worked_on = ends(one, 0, ahead, "--final-check", "all")

    assert [(each["id"], each["cost_usd"]) for each in worked_on] == [(task, 0.5)]
    facts = one.ok("report")["report"]
    assert (facts["cost"], [each["tries"] for each in facts["done"]]) == (0.5, [1])
    questions = one.asks()
    (done,) = questions.search()
    assert done.recheck
    assert timestamps.parse(done.recheck.at or "") <= questions.now


def test_the_report_of_a_run_has_no_attempt_of_the_list_before(one: Machine) -> None:
    for name in ("a", "b"):
        one.add(f"Make {name}", f"grep -q done {name}", do=f"{SAY} ;; write {name} done")
        ends(one, 0, -YEAR)

    facts = one.ok("report")["report"]

    assert (facts["cost"], [each["title"] for each in facts["done"]]) == (0.5, ["Make b"])


def test_a_claim_of_another_machine_is_shown_as_valid(one: Machine, two: Machine) -> None:
    task = one.file_task("a")
    one.works()

    shown = two.harness("status", **{AHEAD: f"{YEAR}"}).stdout
    next_command = json.loads(two.harness("show", task, "--json", **{AHEAD: f"{YEAR}"}).stdout)["next"]

    assert "leased until" in shown
    assert "its lease ended" not in shown
    assert next_command == "harness status"


@pytest.mark.parametrize("env", [{"HARNESS_SUPERVISED": "1"}, {}])
def test_what_the_files_show_goes_by_the_clock_of_the_list(one: Machine, env: dict[str, str]) -> None:
    """An agent of a run has no connection, and a database may be away."""
    one.file_task("a")
    one.ok("claim", **{AHEAD: f"{YEAR}"})
    if not env:
        link = one.top / ".harness/store.json"
        put(link, link.read_text().replace("host=", "host=/nowhere"))

    shown = one.harness("status", **env, **{AHEAD: f"{YEAR}"}).stdout

    assert "leased until" in shown, shown
