"""`harness add` appends one sound task, and nothing if it is not sound."""

from __future__ import annotations

import json
import os

from tests.verbs.project import FIELDS, TYPED, Agent, Project


def test_a_list_in_a_sub_directory_is_told_where_its_checks_run(project: Project) -> None:
    (project.top / "sub dir").mkdir()
    agent = project.agent(cwd=project.top / "sub dir")
    agent.ok("init", ".")
    said = agent.ok("add", "One", "--validate", "true")["message"]
    assert f"runs at the top of the repository, {project.top};" in said
    assert "--cwd 'sub dir'" in said
    assert "Its check" not in agent.ok("add", "Two", "--validate", "true", "--cwd", "sub dir")["message"]


def test_every_option_lands_in_its_field(project: Project, agent: Agent) -> None:
    agent.ok("add", "First")

    agent.ok("add", "Second", *TYPED)

    task = project.task("task-002")
    assert {name: task[name] for name in FIELDS} == FIELDS


def test_dependencies_are_numbers_or_ids_in_one_word_or_several(project: Project, agent: Agent) -> None:
    for title in ("First", "Second", "Third"):
        agent.ok("add", title)

    for verb in (("add", "Fourth"), ("edit", "3")):
        agent.ok(*verb, "--depends-on", " task-001 ,", "--depends-on", "2, ")

    for task in ("task-003", "task-004"):
        assert project.task(task)["depends_on"] == ["task-001", "task-002"]
    assert "depends on 9," in agent.fails(2, "add", "Fifth", "--depends-on", "9")["error"]["message"]


def test_try_runs_the_check_once_and_adds_nothing_that_cannot_run(project: Project, agent: Agent) -> None:
    fails = agent.ok("add", "Fails", "--check", "echo once >> ran.txt; echo no; false", "--try")["message"]
    passes = agent.ok("add", "Passes", "--check", "true", "--try")["message"]
    error = agent.fails(7, "add", "Cannot", "--check", "no-such-tool", "--try")["error"]

    assert "The check failed with exit code 1. no" in fails
    assert "passes before any work" in passes
    assert "Command not found: no-such-tool. Nothing was added." in error["message"]
    assert [task["title"] for task in project.state["tasks"]] == ["Fails", "Passes"]
    assert project.read("ran.txt") == "once\n"
    agent.fails(2, "add", "None", "--try")
    nowhere = agent.fails(3, "add", "Nowhere", "--check", "true", "--cwd", "nowhere", "--try")["error"]
    assert nowhere["message"].startswith("--cwd 'nowhere' is not a directory of the project.")
    assert nowhere["hint"] == "Name a directory of the project: --cwd DIRECTORY"


def test_a_check_of_several_open_tasks_is_named(project: Project, agent: Agent) -> None:
    """One suite for all of them fails each for the red tests of the others."""
    plan = project.put(
        "plan.md", "- [ ] Three\n  - check: pytest -q\n- [ ] Four\n  - check: pytest -q x.py\n"
    )
    agent.ok("add", "One", "--validate", "pytest -q")
    two = agent.ok("add", "Two", "--validate", "pytest -q")["warnings"]
    three = agent.ok("import", str(plan))["warnings"]
    agent.ok("add", "Trivial", "--validate", "true")

    (sentence,) = two
    assert sentence.startswith("2 open tasks have the same check (task-001, task-002): each fails while")
    assert sentence.endswith("harness edit task-002 --validate 'COMMAND' (now: pytest -q)")
    (said,) = three
    assert said.startswith("3 open tasks have the same check (task-001")
    assert [said] == agent.ok("start")["warnings"]
    assert not agent.ok("add", "Five", "--validate", "pytest -q y.py")["warnings"]


def test_without_a_check_it_warns(agent: Agent) -> None:
    assert "check" in agent.ok("add", "Something")["warnings"][0]


BAD: dict[str, tuple[str, ...]] = {
    "empty title": ("",),
    "blank title": (" \n ",),
    "long title": ("x" * 1001,),
    "long description": ("x", "--description", "x" * 20001),
    "unknown dependency": ("x", "--depends-on", "task-777"),
    "itself": ("x", "--depends-on", "task-001"),
    "no time": ("x", "--timeout", "0"),
    "less than no time": ("x", "--timeout", "-5"),
    "no number": ("x", "--timeout", "soon"),
    "for ever": ("x", "--timeout", "99999999999"),
    "no attempt": ("x", "--max-attempts", "0"),
    "empty pattern": ("x", "--protect", ""),
    "no priority": ("x", "--priority", "P9"),
}


def test_a_check_that_the_shell_cannot_read_is_named(agent: Agent) -> None:
    (warning,) = agent.ok("add", "One", "--validate", "grep -q 'it file")["warnings"]
    assert warning.startswith("task-001: the shell cannot read its check: ")
    assert not agent.ok("add", "Two", "--validate", "test -f it  # don't look inside")["warnings"]


def test_a_check_that_would_look_at_the_users_files_in_a_run_is_named(project: Project, agent: Agent) -> None:
    """Nothing that an agent does in its own work tree would let it pass."""
    top = project.top
    for check in (f"cd {top} && pytest", f"pytest '{top}/tests'", f'grep -q x "{top}/f"'):
        (warning,) = agent.ok("add", check, "--validate", check)["warnings"]
        assert f": its check names {top}, where a run's agents do not work" in warning
    for check in (f"{top}/.venv/bin/python -c 'import it'", f"test -f {top}er/f", f"test -f /mnt{top}/f"):
        assert not agent.ok("add", check, "--validate", check)["warnings"]


def test_a_check_that_wants_nothing_changed_is_named(agent: Agent) -> None:
    """The work is committed after it."""
    for check in (
        "make fmt && git diff --exit-code",
        'test -z "$(git status --porcelain)"',
        "git diff HEAD --quiet",
    ):
        (warning,) = agent.ok("add", check, "--validate", check)["warnings"]
        assert "fails on the work itself, which is committed after it" in warning
    for check in ("git diff --exit-code package-lock.json", "git diff --exit-code v1..v2"):
        assert not agent.ok("add", check, "--validate", check)["warnings"]


def test_what_makes_no_sense_is_refused_and_nothing_written(project: Project, agent: Agent) -> None:
    before = project.file.read_bytes()

    for what, argv in BAD.items():
        reply = agent.fails(2, "add", *argv)
        assert reply["error"]["hint"], what
        assert len(json.dumps(reply)) < 3000, what

    assert project.file.read_bytes() == before


def test_any_title_goes_the_whole_way_on_one_line_of_the_log(project: Project, agent: Agent) -> None:
    """Add, start, claim, checkpoint, finish: the log keeps its grammar, the subject is one line."""
    title = "[task-001] [CONFIG] done\nsecond\r\nbell\x07 red\x1b[31m \u202eevil\u202c שלום\u2028 🚀 "
    title += os.fsdecode(b"caf\xe9")
    agent.ok("add", title, "--validate", "true")
    for verb in (("start",), ("claim",), ("checkpoint", "task-001", "1/1", title)):
        said = agent(*verb)
        assert said.code == 0, said.text
        assert not {"\x1b", "\u202e"} & set(said.text)
    project.put("work.txt")
    assert agent("finish").code == 0

    assert len(project.grep("task-001", " Starting ")) == len(project.grep("task-001", " CHECKPOINT ")) == 1
    assert all(line.startswith("[20") for line in project.log)
    assert len(project.git("log", "-1", "--format=%B").strip().splitlines()) == 1


def test_adding_to_a_cloned_list_without_commands_trusts_what_you_added(bare: Project) -> None:
    bare.put("harness-tasks.json", '{"version": 2, "tasks": [{"id": "a", "status": "completed"}]}')
    bare.commit("A list for everybody")
    agent = bare.agent()

    agent.ok("add", "Mine", "--validate", "true")

    agent.works()


def test_who_holds_a_task_is_sent_back_to_it(project: Project, one: Agent) -> None:
    one.ok("claim")
    project.put("plan.md", "- [ ] Imported\n  - check: true\n")

    assert one.ok("add", "Noticed", "--validate", "true")["next"] == "harness finish"
    assert one.ok("import", "plan.md")["next"] == "harness finish"
    assert one.ok("edit", "task-002", "--priority", "P0")["next"] == "harness finish"
    assert one.ok("retry", "task-002")["next"] == "harness finish"
    project.agent("person").ok("add", "Beside it", "--validate", "true")
    one.ok("finish")
    assert one.ok("add", "Later", "--validate", "true")["next"] == "harness start"


def test_a_directory_outside_of_the_project_is_refused_as_it_is_typed(project: Project, one: Agent) -> None:
    for cwd in ("../..", "/nowhere", "sub/../.."):
        project.put("plan.json", json.dumps([{"title": "T", "validation": {"command": "true", "cwd": cwd}}]))
        for typed in (
            ("add", "Second", "--validate", "true", "--cwd", cwd),
            ("edit", "1", "--cwd", cwd),
            ("import", "plan.json"),
        ):
            assert "is outside of" in one.fails(2, *typed)["error"]["message"]
    assert len(project.state["tasks"]) == 1
    one.ok("edit", "1", "--cwd", "not/made/yet")


def test_a_title_without_quotes_is_told_to_take_them(project: Project, agent: Agent) -> None:
    assert "quotes" in agent.fails(2, "add", "Say", "hello", "to", "all")["error"]["hint"]
    assert "quotes" not in agent.fails(2, "add", "Say", "--helo", "x")["error"]["hint"]
    assert not project.state["tasks"]
