"""Which session is meant by `--continue` and `resume`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loop.conftest import CHAT, Hs, Serve, bodies, session_of
from tests.loop.servers.script import say


def test_continue_passes_by_a_session_in_which_nothing_was_said(
    hs: Hs, serve: Serve, home: Path, project: Path
) -> None:
    server = serve(CHAT, say("One."), say("Two."))
    env = CHAT.environment(server)
    hs("begin", env=env)
    before = session_of(home)
    # As an editor leaves one that nobody has used.
    unused = before.with_name("20990101-000000-1")
    (unused / "messages").mkdir(parents=True)
    (unused / "session.conf").write_text(f"id={unused.name}\ncwd={project}\n", encoding="utf-8")

    assert hs("--continue", "and now?", env=env).out == "Two.\n"
    assert len(bodies(before)) == 4


def test_continue_is_the_newest_session_of_this_directory(hs: Hs, serve: Serve, tmp_path: Path) -> None:
    server = serve(CHAT, say("Here."), say("Elsewhere."), say("Again."))
    env = CHAT.environment(server)
    other = tmp_path / "other"
    other.mkdir()
    hs("begin here", env=env)
    hs("begin elsewhere", env=env, cwd=other)

    answer = hs("--continue", "and now?", env=env)

    assert answer.out == "Again.\n", answer.err
    assert "begin here" in str(server.requests[2])
    assert "begin elsewhere" not in str(server.requests[2])


def test_resume_is_the_session_that_changed_last(hs: Hs, serve: Serve) -> None:
    server = serve(CHAT, say("First."), say("Second."))
    hs("begin", env=CHAT.environment(server))

    answer = hs("resume", "go on", env=CHAT.environment(server))

    assert answer.out == "Second.\n", answer.err
    assert "First." in str(server.requests[1])


@pytest.mark.parametrize("task", ["word " * 100, "ü" * 200, "x" * 100_000], ids=["words", "umlauts", "long"])
def test_a_task_that_is_longer_than_a_file_name_is_no_session(hs: Hs, serve: Serve, task: str) -> None:
    server = serve(CHAT, say("Done."))
    # Before there is a directory of sessions, no name in it is too long.
    assert hs("first", env=CHAT.environment(server)).code == 0

    answer = hs(task, env=CHAT.environment(server))

    assert (answer.code, answer.out) == (0, "Done.\n"), answer.err
    assert server.requests[1]["messages"][-1]["content"].strip() == task.strip()
