"""What whoever takes a task is told: the whole specification, its limits, and how the last attempt failed."""

from __future__ import annotations

from harness_lib.core import quoting
from tests.verbs.project import Agent, Project

PYTEST = """\
cat <<'END'
=================================== FAILURES ===================================
____________________________ test_total_adds_tax _____________________________

>       assert total([10, 20]) == 33, "tax is missing"
E       AssertionError: tax is missing
E       assert 30 == 33

test_cart.py:11: AssertionError
=========================== short test summary info ============================
FAILED test_cart.py::test_total_adds_tax - AssertionError: tax is missing
!!!!!!!!!!!!!!!!!!!!!!!!!! stopping after 1 failures !!!!!!!!!!!!!!!!!!!!!!!!!!!
1 failed, 1 passed in 2.25s
END
exit 1"""


def claim(agent: Agent) -> list[str]:
    brief = agent.ok("claim")["brief"]
    assert isinstance(brief, str)
    return brief.splitlines()


def test_the_next_attempt_reads_what_failed_and_where_all_of_it_is(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", PYTEST)
    message = agent.works(code=1)["message"]

    brief = claim(agent)

    assert not [line for line in brief if "the check runs in" in line]
    said = brief[brief.index("what the check said:") :]
    assert said[1] == "  | test_cart.py::test_total_adds_tax"
    assert "  | E       AssertionError: tax is missing" in said
    assert f"all that it said: {project.top}/.harness/logs/task-001/1.log" in said
    assert "\n".join(said[:3]) in message
    why = "test_cart.py::test_total_adds_tax: AssertionError: tax is missing"
    red = "Every test that fails was red before this attempt: test_cart.py::test_total_adds_tax."
    assert project.task()["error_log"] == [f"[TEST_FAIL] The check failed with exit code 1. {red} {why}"]
    assert len(project.grep("ERROR", "[task-001]", "tax is missing")) == 1


def test_what_an_earlier_check_said_is_not_shown_of_what_was_given_up(project: Project, agent: Agent) -> None:
    agent.ok("add", "One", "--validate", "echo the reason; false")
    agent.works(code=1)
    agent.ok("claim")
    agent("fail", "--message", "no such call", "task-001")
    assert project.task()["attempts"] == 2

    assert not [line for line in claim(agent) if "| the reason" in line]


def test_a_description_is_quoted_line_by_line_and_whole(agent: Agent) -> None:
    rows = [
        "Build it:",
        "",
        "    def total(items):",
        "\t\treturn 0  # a \x1b[31mtab",
        *("x" * 100 for _ in range(150)),
    ]
    agent.ok("add", "One", "--description", "\n".join(rows), "--validate", "false")

    brief = claim(agent)

    at = brief.index("description:")
    assert brief[at + 1 : at + 4] == ["  | Build it:", "  |", "  |     def total(items):"]
    assert brief[at + 4] == "  |         return 0  # a \ufffd[31mtab"
    assert brief[at + 5 : at + 155] == ["  | " + "x" * 100] * 150
    assert brief[at + 155] == "check (max 300 s): false"


def test_of_what_nobody_can_hold_the_brief_says_where_the_rest_is() -> None:
    assert quoting.quoted("y" * 25_000, "harness show task-001") == [
        "  | " + "y" * quoting.QUOTED_LENGTH,
        "  … 5,000 more characters: harness show task-001",
    ]


def test_the_check_its_time_and_its_directory_are_told_apart(project: Project, agent: Agent) -> None:
    project.put("sub/dir/file")
    agent.ok("add", "One", "--validate", "make test", "--cwd", "sub/dir", "--timeout", "90")
    agent.ok("add", "Two", "--validate", "set -e\nmake a\nmake b\n")
    first = claim(agent)
    agent.ok("release")
    agent.ok("edit", "task-001", "--priority", "P2")

    agent.cwd = project.top / "sub"
    second = claim(agent)

    at = first.index("check (max 90 s): make test")
    assert first[at + 1] == "the check runs in: sub/dir"
    # A chat may have begun below the top.
    assert second[-1] == f"the check runs in: {project.top}"
    at = second.index("check (max 300 s):")
    assert second[at + 1 : at + 4] == ["  | set -e", "  | make a", "  | make b"]
