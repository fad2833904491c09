"""`--notify CMD`: told at the end, of what failed for good, and of a limit; it never holds up the run."""

from __future__ import annotations

import json
import signal
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from tests.runs.workshop import Workshop


@pytest.fixture
def news(tmp_path: Path) -> Path:
    """Return where each piece of news becomes a line."""
    return tmp_path / "news"


def notify(news: Path) -> tuple[str, str]:
    return "--notify", f'echo "$HARNESS_EVENT: $(echo "$HARNESS_MESSAGE" | tr "\\n" "/")" >> {news}'


def kinds(workshop: Workshop, news: Path, number: int) -> list[str]:
    """Return which news there were, once there are `number`: nobody waits for who brings them."""
    workshop.wait_for("the news", lambda: news.exists() and len(news.read_text().splitlines()) >= number)
    return [line.partition(":")[0] for line in news.read_text().splitlines()]


@pytest.mark.release
def test_the_end_is_told_and_a_command_that_fails_is_a_warning(workshop: Workshop, news: Path) -> None:
    workshop.file_task("one")
    option, command = notify(news)
    said = workshop.run(option, f"{command}; echo no such bell; exit 3")
    assert said.returncode == 0
    assert kinds(workshop, news, 1) == ["done"]
    assert "Every task is completed." in news.read_text()
    assert "The command of --notify failed" in said.stdout
    assert "no such bell" in (workshop.top / ".harness/logs/notify.log").read_text()
    workshop.nothing_is_left_over()


@pytest.mark.release
def test_a_project_that_is_moved_ends_the_run_and_may_come_back(workshop: Workshop, news: Path) -> None:
    moved = workshop.top.with_name("moved")
    workshop.add("One", "grep -q done f", do=f"sh mv {workshop.top} {moved}\nwrite f done")
    workshop.file_task("two")

    said = workshop.ends(7, *notify(news))

    assert f"{workshop.top} is gone: it was moved or removed" in said.stdout
    assert "Traceback" not in said.stdout + said.stderr
    assert kinds(workshop, news, 1) == ["stuck"]
    # Nothing was made in its place.
    assert not workshop.top.exists()

    moved.rename(workshop.top)
    said = workshop.ends(0)

    workshop.all_is_well()


def test_a_task_that_failed_for_good_and_a_used_up_budget_are_told(workshop: Workshop, news: Path) -> None:
    """An attempt that failed and is made again is not."""
    for most in ("1", "2"):
        workshop.add("Never", "false", "--max-attempts", most, do="write f x")
    workshop.file_task("one")
    workshop.ends(9, *notify(news), "--max-tasks", "3")
    assert kinds(workshop, news, 3) == ["failed", "limit", "stopped"]
    assert "task-001 failed for good" in news.read_text()
    assert "attempts: 3 of 3" in news.read_text()


@pytest.mark.release
def test_a_usage_limit_is_told_once_for_all_and_who_stopped_it(workshop: Workshop, news: Path) -> None:
    for name in ("one", "two"):
        workshop.file_task(name)
    later = datetime.now(timezone.utc) + timedelta(hours=1)
    run = workshop.start(
        *notify(news), "-j", "2", agent=f"echo '{json.dumps({'limit_resets_at': str(later)})}'"
    )
    workshop.wait_for("both wait", lambda: workshop.printed.count("usage limit, goes on at") == 2)
    assert kinds(workshop, news, 1) == ["limit"]
    for _ in range(2):
        run.send_signal(signal.SIGINT)
        workshop.wait_for("it says so", lambda: "starting nothing new" in workshop.printed)
    assert run.wait(60) == 9
    assert kinds(workshop, news, 2) == ["limit", "stopped"]


def test_a_run_that_never_began_is_told_to_who_typed_it_only(workshop: Workshop, news: Path) -> None:
    workshop.file_task("one")
    assert workshop.run(*notify(news), "--target", "no-such-branch").returncode != 0
    assert not news.exists()


def test_a_command_that_hangs_holds_up_nothing(workshop: Workshop, tmp_path: Path) -> None:
    go = tmp_path / "go"
    workshop.file_task("one")
    said = workshop.run("--notify", f"while [ ! -e {go} ]; do sleep 0.05; done; touch {go}.heard")
    assert said.returncode == 0
    go.touch()
    workshop.wait_for("it goes on by itself", (tmp_path / "go.heard").exists)
