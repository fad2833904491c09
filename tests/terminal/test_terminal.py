"""On a terminal: drawn, coloured unless NO_COLOR says otherwise, and as safe as in a pipe."""

from __future__ import annotations

import io
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness_lib.core.context import Reply
from harness_lib.errors import Exit, UsageError
from harness_lib.terminal import render
from harness_lib.terminal.render import Screen
from tests.terminal.pseudo_terminal import ESCAPE, answered, read_to_end, read_until, shown, typed
from tests.verbs import project as projects
from tests.verbs.project import Project


@contextmanager
def piped(cwd: Path, *argv: str) -> Iterator[subprocess.Popen[str]]:
    """Start `harness ARGV` with pipes, and end it whatever happens."""
    command = [sys.executable, "-m", "harness_lib", *argv]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=cwd, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """Make a project with a list of two tasks, one below the other."""
    made = projects.make(tmp_path / "repo")
    person = made.agents[0]
    person.ok("add", "First", "--validate", "true")
    person.ok("add", "Second [red]not markup[/red]", "--validate", "true", "--depends-on", "task-001")
    yield made
    made.close()


@pytest.fixture
def listed(project: Project) -> Path:
    """Return where it lies."""
    return project.top


def test_the_user_at_a_terminal_may_say_yes_at_once(project: Project) -> None:
    (project.top / ".git/harness/trust.json").unlink()
    assert "Trusted on this machine." in shown(project.top, "trust", "--yes")
    assert project.agents[0].ok("trust")["trusted"]


def test_ctrl_d_at_a_question_means_no_and_the_answer_has_its_own_line(project: Project) -> None:
    (project.top / ".git/harness/trust.json").unlink()
    code, printed = answered(project.top, "\x04", "trust")
    assert code == 8
    assert "[y/N] \nNot trusted: " in ESCAPE.sub("", printed)


def test_status_draws_every_task_and_the_next_command(listed: Path) -> None:
    said = shown(listed, "status")
    plain = ESCAPE.sub("", said)
    assert ESCAPE.search(said)
    assert "0 of 2 completed, 2 pending" in plain
    assert "[pending] task-002: Second [red]not markup[/red] (0/3)" in plain
    assert plain.rstrip().endswith("next: harness start")
    assert "\x1b" not in shown(listed, "status", "--json")


def test_no_color_means_none(listed: Path) -> None:
    for argv in ("status", "graph", "show task-002", "show nobody", "log"):
        codes = re.findall(r"\x1b\[([0-9;]*)m", shown(listed, *argv.split(), NO_COLOR="1"))
        assert [code for code in codes if re.search(r"\b(3|4|9|10)[0-7]\b", code)] == [], argv


def test_a_dumb_terminal_gets_plain_text(listed: Path) -> None:
    for argv in ("status", "graph", "show nobody"):
        assert "\x1b" not in shown(listed, *argv.split(), TERM="dumb"), argv


def test_graph_is_a_tree_and_a_diagram_plain(listed: Path) -> None:
    plain = ESCAPE.sub("", shown(listed, "graph"))
    assert "[pending] task-001: First\n└─ [pending] task-002: Second [red]not markup[/red]" in plain
    said = shown(listed, "graph", "--format", "mermaid")
    assert said.startswith("flowchart TD")
    assert "\x1b" not in said


def waiting_work(project: Project) -> None:
    """Let work wait for main on the branch harness/main."""
    tree = project.git("rev-parse", "HEAD^{tree}")
    ahead = project.git("commit-tree", tree, "-p", "HEAD", "-m", "Work that waits")
    project.git("update-ref", "refs/heads/harness/main", ahead)


def test_what_the_user_must_or_can_do_is_never_cut_off(project: Project) -> None:
    """Whoever has a narrow terminal needs the command at the end of the line as well."""
    project.agents[0].ok("start")
    waiting_work(project)
    project.edit_task("task-002", halt=f"CONFIG: {'long ' * 30}tail")
    plain = ESCAPE.sub("", shown(project.top, "status", COLUMNS="80"))
    assert "Take it over with: git merge harness/main\n" in plain
    assert "tail (harness show task-002)\n" in plain
    assert "harness stop --session 1" in " ".join(plain.split())


def test_watching_ends_by_itself_when_nothing_is_left(project: Project) -> None:
    agent = project.agent()
    with typed(project.top, "status", "--watch") as (process, ours):
        read_until(ours, "0 of 2 completed")
        for task in ("task-001", "task-002"):
            agent.ok("claim", task)
            agent.ok("finish", task)
        said = read_to_end(ours)
        assert process.wait() == 0
    assert "2 of 2 completed" in said
    assert "Nothing is left to do." in said


def test_a_dumb_terminal_gets_a_line_per_change(project: Project) -> None:
    agent = project.agent()
    with typed(project.top, "status", "--watch", TERM="dumb") as (process, ours):
        read_until(ours, "0 of 2 completed")
        agent.ok("claim", "task-001")
        agent.ok("finish", "task-001")
        read_until(ours, "1 of 2 completed")
        process.send_signal(signal.SIGINT)
        read_to_end(ours)
        assert process.wait() == 0


def test_the_user_ends_watching_with_ctrl_c_and_that_is_no_failure(project: Project) -> None:
    """What the user must do is never cut off here, either."""
    waiting_work(project)
    with typed(project.top, "status", "--watch", COLUMNS="80") as (process, ours):
        said = read_until(ours, "sessions:")
        process.send_signal(signal.SIGINT)
        said += read_to_end(ours)
        assert process.wait() == 0
    assert "Take it over with: git merge harness/main" in " ".join(ESCAPE.sub("", said).split())
    assert "Traceback" not in said
    assert "recover" not in said


def test_a_list_that_is_watched_in_a_pipe_ends_well_when_told(listed: Path) -> None:
    """Who only looks leaves nothing to recover, whoever ends it."""
    with piped(listed, "status", "--watch") as process:
        assert process.stdout is not None
        assert "0 of 2 completed" in process.stdout.readline()
        process.terminate()
        _out, err = process.communicate(timeout=200)
    assert (process.returncode, err) == (0, "")


def test_the_log_is_followed_until_somebody_ends_it(listed: Path) -> None:
    with piped(listed, "log", "-f", "-n", "1") as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        with (listed / "harness-progress.txt").open("a") as log:
            log.write("[2025-07-01T10:00:00Z] [SESSION-1] WARN more\n")
        assert "WARN more" not in first
        assert "WARN more" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _out, err = process.communicate(timeout=200)
    assert (process.returncode, err) == (0, "")


def test_what_never_ends_is_no_json_object(project: Project) -> None:
    for argv in ("status --watch", "log -f"):
        assert project.agent().fails(2, *argv.split())["error"]["kind"] == "USAGE"


def test_who_waits_is_told_what_takes_long_and_who_reads_it_afterwards_is_not(project: Project) -> None:
    argv = ("validate", "--all")
    assert "harness: checking " in shown(project.top, *argv)
    assert "checking" not in project.agent()(*argv).text


# --- the text of a reply, for agents


def rendered(result: Reply | UsageError) -> tuple[int, str, str]:
    screen = Screen(out=io.StringIO(), err=io.StringIO())
    code = (
        render.error(result, "verb", screen)
        if isinstance(result, UsageError)
        else render.reply(result, screen)
    )
    assert isinstance(screen.out, io.StringIO)
    assert isinstance(screen.err, io.StringIO)
    return code, screen.out.getvalue(), screen.err.getvalue()


def test_text_ends_with_the_next_command_and_warnings_and_errors_are_talk() -> None:
    reply = Reply("one\ntwo", Exit.STOP, next="harness stop", warnings=("careful",))
    assert rendered(reply) == (9, "one\ntwo\nnext: harness stop\n", "harness: warning: careful\n")
    assert rendered(Reply("one")) == (0, "one\n", "")
    error = (2, "", "harness: USAGE: Wrong.\nharness: hint: Do this.\n")
    assert rendered(UsageError("Wrong.", "Do this.")) == error
