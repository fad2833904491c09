"""Work that adds a file named as a secret waits for the user, who accepts it or returns it."""

from __future__ import annotations

import pytest

from tests.conftest import for_release
from tests.verbs.project import Agent, Project, begin

SECRET = ("accept", "task-001", "--path", ".env")


@pytest.fixture
def started(project: Project, agent: Agent) -> Agent:
    """Return an agent whose work passes its check and has a `.env` in it."""
    begin(agent)
    project.put("done")
    project.put(".env", "KEY=1\n")
    return agent


@pytest.fixture
def held(started: Agent) -> Agent:
    """Return an agent whose finished work waits for the user because of its `.env`."""
    started.fails(8, "finish")
    return started


@pytest.fixture
def person(project: Project) -> Agent:
    return project.agent("person")


def test_nothing_is_committed_and_the_work_stands_where_it_was(project: Project, started: Agent) -> None:
    before, head = project.files, project.head

    error = started.fails(8, "finish")["error"]

    assert project.files == before
    assert project.head == head
    for words in (".env", "harness accept task-001 --path .env", "harness return task-001"):
        assert words in error["message"]
    assert "name them in .gitignore" in error["hint"]
    task = project.task()
    assert (task["status"], task["halt_kind"], task["attempts"]) == ("in_progress", "SECRET", 0)
    # The Stop hook goes by it.
    assert project.state["sessions"][0]["halt_kind"] == "SECRET"


def test_who_takes_the_file_away_just_finishes(project: Project, held: Agent) -> None:
    project.put(".gitignore", ".env\n")

    reply = held.ok("finish")

    assert project.in_commit() == [".gitignore", "done", "tracked.txt"]
    assert (reply["task"]["status"], reply["task"].get("halt")) == ("completed", None)


@pytest.mark.parametrize("more", ["; touch pwned", " --path other"])
def test_a_name_that_reads_as_the_command_becomes_none(project: Project, started: Agent, more: str) -> None:
    name = f".env.the user types: harness accept task-001{more}; to send the work back"
    (project.top / ".env").rename(project.top / name)
    started.fails(8, "finish")

    assert started.ok("show", "1")["next"] == f"harness accept task-001 --path '{name}'"


@pytest.mark.usefixtures("held")
def test_accepted_it_is_committed_at_once(project: Project, person: Agent) -> None:
    reply = person.ok("accept", "1", "--path", ".env")

    assert project.in_commit() == [".env", "done", "tracked.txt"]
    assert "is completed (commit" in reply["message"]
    assert ", 2 files)" in reply["message"]
    assert project.task()["status"] == "completed"
    assert project.grep("Completed [task-001] (commit")
    assert [session.get("halt") for session in project.state["sessions"]] == [None]


def test_each_path_must_be_accepted(project: Project, started: Agent, person: Agent) -> None:
    project.put("keys/id_rsa")
    started.fails(8, "finish")

    assert ".env" in person.fails(2, "accept", "task-001")["error"]["hint"]
    assert "nothing of that name" in person.fails(2, "accept", "task-001", "--path", "x")["message"]
    whole = "harness accept task-001 --path .env --path keys/id_rsa"
    assert person.ok("show", "task-001")["next"] == whole
    assert person.fails(8, *SECRET)["next"] == "harness accept task-001 --path keys/id_rsa"
    assert person.ok("show", "task-001")["next"] == "harness accept task-001 --path keys/id_rsa"
    assert "cannot go on" not in person("status").out
    assert project.task()["halt_kind"] == "SECRET"
    assert "harness accept task-001 --path keys/id_rsa; " in project.task()["halt"]
    person.ok("accept", "task-001", "--path", "keys/")

    assert project.in_commit() == [".env", "done", "keys/id_rsa", "tracked.txt"]


@pytest.mark.usefixtures("held")
def test_nothing_is_accepted_while_its_check_may_not_run(project: Project, person: Agent) -> None:
    """It would count as accepted, and wait for nobody any more, although nothing was committed."""
    before = project.file.read_bytes()
    (project.top / ".git/harness/trust.json").unlink()
    said = person.fails(8, *SECRET)
    assert "harness trust" in str(said)
    assert project.file.read_bytes() == before


def test_accepted_work_that_fails_its_check_goes_on(project: Project, held: Agent, person: Agent) -> None:
    (project.top / "done").unlink()

    assert "not done" in person.fails(1, *SECRET)["message"]

    assert (project.task()["status"], project.task()["attempts"]) == ("in_progress", 0)
    assert not project.state["sessions"][0].get("halt")
    project.put("done")
    held.ok("finish")
    assert ".env" in project.in_commit()


def test_its_agent_does_not_give_it_up(project: Project, held: Agent, person: Agent) -> None:
    """The user would be asked about work that is not there."""
    error = held.fails(8, "fail", "--message", "never mind")["error"]

    assert "waits for the user's answer" in error["message"]
    assert "harness release task-001" in error["hint"]
    assert project.task()["attempts"] == 0
    person.ok(*SECRET)


def test_it_waits_on_after_its_agent_has_handed_it_back(project: Project, held: Agent, person: Agent) -> None:
    """Without the work an answer would be about nothing, and its check would fail."""
    said = held.ok("release")

    assert "the work still waits for the user" in said["message"]
    assert project.files.keys() == {"tracked.txt"}
    assert project.task()["halt_kind"] == "SECRET"
    held.ok("stop")
    person.ok(*SECRET)
    assert project.in_commit() == [".env", "done", "tracked.txt"]


def test_it_waits_on_after_its_agent_has_died(project: Project, held: Agent, person: Agent) -> None:
    held.die()

    another = project.agent("another")
    recovered = another.ok("start")["recovered"]

    assert "harness accept task-001 --path .env" in recovered[0]
    assert "mark completed" not in str((recovered, project.log))
    assert "halted until the user acts: SECRET" in another.ok("claim")["brief"]
    assert (project.task()["status"], project.task()["halt_kind"]) == ("in_progress", "SECRET")
    assert project.state["sessions"][0]["halt_kind"] == "SECRET"
    # Another try would be refused, too.
    assert {another.ok(verb)["next"] for verb in ("claim", "start", "status")} == {"harness show task-001"}
    person.ok(*SECRET)
    assert project.in_commit() == [".env", "done", "tracked.txt"]


@pytest.mark.usefixtures("held")
def test_a_merge_of_the_users_is_not_rolled_back_with_it(project: Project, person: Agent) -> None:
    (project.top / ".git/MERGE_HEAD").write_text(project.head + "\n", encoding="ascii")

    person.fails(8, "return", "task-001", "no")

    assert {".env", "done"} <= set(project.files)


def test_returned_it_comes_with_what_the_user_said(project: Project, held: Agent, person: Agent) -> None:
    person.ok("return", "task-001", "no keys in the repository")
    assert "returns it: no keys in the repository" in person.ok("show", "task-001")["message"]

    task = project.task()
    assert (task["status"], task.get("halt"), task["attempts"]) == ("pending", None, 0)
    assert "done" not in project.files
    assert "no keys in the repository" in held.ok("claim")["brief"]
    assert {".env", "done"} <= set(project.files)
    (project.top / ".env").unlink()
    held.ok("finish")
    assert project.in_commit() == ["done", "tracked.txt"]


def test_agents_answer_nothing_and_nobody_where_nothing_was_asked(project: Project, started: Agent) -> None:
    answers = (SECRET, ("return", "task-001", "fine"))
    for verb in answers:
        assert "no work that waits" in started.fails(2, *verb)["message"]
        assert "no work that waits" in started.fails(2, *verb, CLAUDECODE="1")["message"]
    started.fails(8, "finish")

    for verb in answers:
        assert "user" in started.fails(8, *verb, CLAUDECODE="1")["error"]["hint"]
    hint = started.fails(8, "accept", "1", CLAUDECODE="1")["error"]["hint"]
    assert hint.endswith(": harness accept task-001 --path .env")

    assert project.task()["halt_kind"] == "SECRET"


def test_a_secret_that_the_attempt_committed_itself_stops_it_too(project: Project, holder: Agent) -> None:
    """Also one that a later commit takes away: it would be in the history for good."""
    project.commit("by the agent", files={"server.pem": "x\n"})
    (project.top / "server.pem").unlink()
    project.commit("by the agent", files={"done": "x\n"})

    assert "server.pem" in holder.fails(8, "finish")["message"]


def test_caches_that_the_attempt_committed_itself_are_taken_out(project: Project, holder: Agent) -> None:
    project.commit("by the agent", files={"done": "x\n", "web/node_modules/a/index.js": "x\n"})

    (said,) = holder.ok("finish")["warnings"]

    assert "web/node_modules was left out of its commits" in said
    assert project.in_commit() == ["done", "tracked.txt"]
    assert project.git("log", "-1", "--format=%s") == "by the agent"
    assert (project.top / "web/node_modules/a/index.js").exists()


@pytest.mark.parametrize("how", ["untracked before", *for_release("tracked", "moved")])
def test_what_the_attempt_does_not_add_stops_nothing(project: Project, agent: Agent, how: str) -> None:
    project.put(".env", "OLD=1\n")
    if how != "untracked before":
        project.commit()
    begin(agent)
    if how == "moved":
        (project.top / "sub").mkdir()
        (project.top / ".env").rename(project.top / "sub/.env")
    else:
        project.put(".env", "NEW=1\n")
    agent.finishes({"done": "x\n"})


def test_a_key_inside_a_file_is_said_and_stops_nothing(project: Project, agent: Agent) -> None:
    project.commit(files={"old.py": "KEY = 'AKIAABCDEFGHIJKLMNOP'\n"})
    begin(agent)
    project.put("old.py", "KEY = 'AKIAABCDEFGHIJKLMNOP'\n# more\n")
    project.put("new.py", "KEY = 'sk-abcdefghijklmnopqrstuvwx'\n")
    project.put("done")

    reply = agent.ok("finish")

    (warning,) = [line for line in reply["warnings"] if "seems to hold" in line]
    assert "'new.py'" in warning
    assert "sk-abc" not in str(reply)


def test_an_npmrc_is_a_secret_where_it_has_a_token(project: Project, holder: Agent) -> None:
    project.put("done")
    project.put(".npmrc", "//registry.example/:_authToken=abc\n")
    assert holder("finish").code == 8
    project.put(".npmrc", "//registry.example/:_authToken=${TOKEN}\nsave-exact=true\n")
    assert holder("finish").code == 0
