"""`approve`: what runs without a question, and what "always" covers."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_lib.loop import approval, runtime
from harness_lib.loop.always import always_about
from harness_lib.loop.asking import Question, Said
from tests.hs.person import person
from tests.loop.conftest import CHAT, Hs, Serve
from tests.loop.servers.script import say, use

ASKED = ("--approve", "ask", "go")


@pytest.mark.parametrize(
    ("mode", "written", "result"),
    [("auto", True, "wrote"), ("read-only", False, "nothing may be changed"), ("ask", False, "none here")],
)
def test_a_mode_says_what_runs_where_nobody_is(
    hs: Hs, serve: Serve, project: Path, mode: str, *, written: bool, result: str
) -> None:
    (project / "there").write_text("content of a file\n", encoding="utf-8")
    server = serve(
        CHAT, use("read_file", path="there"), use("write_file", path="made", content="x"), say("Done.")
    )

    answer = hs("--approve", mode, "go", env=CHAT.environment(server))

    assert answer.code == 0, answer.err
    assert "content of a file" in str(server.requests[1]["messages"][-1])
    assert (project / "made").exists() is written
    assert result in str(server.requests[2]["messages"][-1])


def test_a_setting_counts_and_the_option_before_it(hs: Hs, serve: Serve, home: Path, project: Path) -> None:
    (home / ".harness").mkdir(parents=True)
    (home / ".harness" / "settings.conf").write_text("approve=read-only\n", encoding="utf-8")
    server = serve(CHAT, use("bash", command="touch made"), say("Done."), use("bash", command="touch made"))

    hs("go", env=CHAT.environment(server))
    before = (project / "made").exists()
    hs("--max-turns", "1", "--approve=auto", "go", env=CHAT.environment(server))

    assert (before, (project / "made").exists()) == (False, True)
    assert hs("--approve", "perhaps", "go", env=CHAT.environment(server)).code == 2


def test_a_setting_that_is_none_runs_nothing(hs: Hs, serve: Serve, home: Path, project: Path) -> None:
    (home / ".harness").mkdir(parents=True)
    (home / ".harness" / "settings.conf").write_text("approve=sometimes\n", encoding="utf-8")
    server = serve(CHAT, use("bash", command="touch made"), say("Done."))

    hs("go", env=CHAT.environment(server))

    assert not (project / "made").exists()
    assert "approve=sometimes is none of" in str(server.requests[1])


def test_always_holds_for_the_session_and_all_its_subagents(serve: Serve, project: Path) -> None:
    server = serve(
        CHAT,
        use("agent", prompt="make one"),
        use("bash", command="touch one"),
        say("Made one."),
        use("bash", command="touch two"),
        use("agent", prompt="make three"),
        use("bash", command="touch three"),
        say("Made three."),
        say("Done."),
    )

    with person(*ASKED, cwd=project, env=CHAT.environment(server)) as someone:
        someone.sees("always (bash touch)")
        someone.types("a\n")
        someone.sees("Done.")
        someone.leaves()

    assert {path.name for path in project.iterdir()} == {"one", "two", "three"}
    assert someone.raw.count("may bash run") == 1


def test_always_for_one_verb_is_no_yes_to_another(home: Path, project: Path) -> None:
    asked: list[str] = []

    def person_says_always(question: Question) -> Said:
        asked.append(str(question.input["command"]))
        return Said(allowed=True, always=True)

    run = runtime.start({"HOME": str(home)}, project)
    run.asker = person_says_always
    for command in ("git status", "git status --short", "git reset --hard", "git -c alias.zz=!id zz"):
        for _ in range(2):
            assert approval.put(run, Question("bash", {"command": command})).allowed

    assert asked == [
        "git status", "git reset --hard", "git -c alias.zz=!id zz", "git -c alias.zz=!id zz",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("command", "subject"),
    [
        ("git status", "bash git status"),
        ("  git\tstatus --short", "bash git status"),
        ("git reset --hard", "bash git reset"),
        ("git stash drop", "bash git stash drop"),
        ("docker compose up", "bash docker compose up"),
        ("gh pr view 1", "bash gh pr view"),
        ("/usr/bin/git status", "bash /usr/bin/git status"),
        ("pip3 install x", "bash pip3 install"),
        ("ls -l", "bash ls"),
        ("make test", "bash make test"),
        ("make test deploy", "bash make test deploy"),
        ("git -c alias.zz=!id zz", ""),
        ("git --git-dir=x status", ""),
        ("git submodule foreach id", ""),
        ("git stash -u", ""),
        ('"git" status', ""),
        ("g''it status", ""),
        ("git 'status'", ""),
        ("git\u00a0status", ""),
        ("git stat?s", ""),
        ("git", ""),
        ("npm exec id", ""),
        ("npm x id", ""),
        ("uv run id", ""),
        ("docker run image", ""),
        ("python3.11 x.py", ""),
        ("./node x", ""),
        ("perl -e 1", ""),
        ("sed s/a/b/e x", ""),
        ("nohup rm x", ""),
        ("time rm x", ""),
        ("git status && rm -r x", ""),
        ("git status > x", ""),
        ("git status\nrm -r x", ""),
        ("git status; rm -r x", ""),
        ("git $(rm -r x)", ""),
        ("NAME=1 rm -r x", ""),
        ("sudo rm -r x", ""),
        ("/usr/bin/env rm -r x", ""),
        ("bash -c whatever", ""),
        ("xargs rm", ""),
        ("* x", ""),
        ("", ""),
    ],
)
def test_always_is_offered_where_the_first_words_say_what_runs(command: str, subject: str) -> None:
    assert always_about(Question("bash", {"command": command})) == subject
