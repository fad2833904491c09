"""The page of a report: one file that loads nothing, and runs nothing of what stands in titles and logs."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from harness_lib.rules.run_records import Opened
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put
from tests.verbs.project import Agent, Project

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
HOSTILE = (
    "</title></script><script>document.title='run'</script><img src=x onerror=alert(1)>\x1b[31m\u202egnp"
)


class Page(HTMLParser):
    """The tags of a page and their attributes."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.text = path.read_text()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


BEGUN = Opened("run-1", 1e9, 1, "", "", "any", 4, "refs/heads/main", None)
OPENED: dict[str, object] = {"event": "opened", **BEGUN._asdict()}


def record(project: Project, lines: list[dict[str, object]]) -> None:
    project.put(".harness/runs/run-1/events.jsonl", "".join(json.dumps(line) + "\n" for line in lines))


def hostile_list(project: Project, agent: Agent, number: int) -> Path:
    """Write the page of a list of `number` tasks, whose texts would run if they could."""
    tasks = [
        {
            "id": f"t{n}",
            "title": f"{n} {HOSTILE}",
            "description": HOSTILE * 3,
            "validation": {"command": f"echo '{HOSTILE}'"},
            "depends_on": [f"t{n - 7}"] if n > 7 else [],
            "status": "failed" if n % 5 == 0 else "pending",
            "attempts": 3 if n % 5 == 0 else 0,
            "error_log": ["[TIMEOUT] before", f"[TEST_FAIL] {HOSTILE}"] if n % 5 == 0 else [],
        }
        for n in range(1, number + 1)
    ]
    project.edit(tasks=tasks)
    lines: list[dict[str, object]] = [{**OPENED, "agent": HOSTILE}]
    for n in range(1, number + 1):
        who, at = {"worker": n % 4}, 1e9 + 10.0 * n
        said = {"last": "", "tokens": 5, "cost": 0.01, "session": HOSTILE}
        lines += [
            {"event": "claimed", **who, "at": at, "task": f"t{n}", "title": HOSTILE, "attempt": 1},
            {"event": "said", **who, "at": at, **said},
            {"event": "ended", **who, "at": at + 35, "task": f"t{n}", "status": "failed", "message": HOSTILE},
        ]
    record(project, lines)
    project.put(".harness/logs/t5/1.log", HOSTILE)
    agent.ok("report", "--html", "page.html")
    return project.top / "page.html"


def test_it_loads_nothing_and_runs_only_its_own_script(project: Project, agent: Agent) -> None:
    page = Page(hostile_list(project, agent, 10))

    names = {tag for tag, _ in page.tags}
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert not names & {"img", "iframe", "object", "embed", "link", "form", "base", "foreignobject"}
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "style")], tag
        assert (attributes.get("href") or "#").startswith("#")
    style, own = (page.text.rpartition(f"<{tag}>")[2] for tag in ("style", "script"))
    parts = (style.partition("</style>")[0], own.partition("</script>")[0])
    of_style, of_script = (base64.b64encode(hashlib.sha256(each.encode()).digest()) for each in parts)
    allowed = f"style-src 'sha256-{of_style.decode()}'; script-src 'sha256-{of_script.decode()}'"
    (policy,) = [a["content"] for t, a in page.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy == f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    assert "url(" not in style
    assert not {"\x1b", "\u202e"} & {*page.text}
    assert page.text.count("<details ") == 10
    assert "[TIMEOUT] before" not in page.text
    # The cost so far climbs in ten equal steps.
    (line,) = [attributes["points"] or "" for tag, attributes in page.tags if tag == "polyline"]
    assert {float(point.partition(",")[2]) for point in line.split()} == {*range(20, 121, 10)}
    assert len({attributes["id"] for _, attributes in page.tags if "id" in attributes}) >= 14
    assert (project.top / "page.html").stat().st_mode & 0o077 == 0


@pytest.mark.release
def test_a_thousand_tasks_are_a_page_of_bounded_size(project: Project, agent: Agent) -> None:
    path = hostile_list(project, agent, 1000)

    assert path.stat().st_size < 5_000_000
    assert path.read_text().count("<details ") == 1000


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
def test_a_real_browser_runs_nothing_of_it(project: Project, agent: Agent) -> None:
    page = hostile_list(project, agent, 10)

    shown = browser(page)

    assert re.search(r"<title>harness report: ", shown)
    assert "document.title='run'" in shown
    assert shown.count("<script") == 1


# Opens a task, looks for another, loads the page anew, and tells what it shows then.
VISITOR = """<iframe src="page.html"></iframe><script>
const frame = document.querySelector("iframe");
let loads = 0;
frame.onload = () => {
  const page = frame.contentDocument;
  const box = page.getElementById("filter");
  if (++loads === 1) {
    page.getElementById("task-t3").open = true;
    box.value = "T5 failed";
    frame.contentWindow.location.reload();
    return;
  }
  const which = (each) => [...page.querySelectorAll(each)].map((task) => task.id).join();
  const seen = box.checkVisibility() ? "seen" : "unseen";
  document.title = `open ${which("details[open]")} shown ${which("details:not([hidden])")} ${seen}`;
};
</script>"""


@pytest.mark.release
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
def test_what_was_open_and_looked_for_stays_over_a_reload(project: Project, agent: Agent) -> None:
    page = hostile_list(project, agent, 10)
    shown = browser(put(page.with_name("visitor.html"), VISITOR))
    assert "<title>open task-t3 shown task-t5 seen</title>" in shown


def browser(page: Path) -> str:
    """Return the document as a browser has it after it was loaded."""
    profile = f"--user-data-dir={page.parent}/profile"
    # Files may look at each other, as pages of one host may.
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", profile)
    said = subprocess.run(
        [str(CHROMIUM), *options, "--virtual-time-budget=5000", "--dump-dom", page.as_uri()],
        capture_output=True,
        check=True,
        timeout=100,
    )
    return said.stdout.decode("utf-8", "replace")


def test_a_run_keeps_its_page_up_to_date(workshop: Workshop) -> None:
    page = workshop.top.parent / "page.html"
    gate = workshop.home / "gate"
    workshop.file_task("f")
    workshop.add("Held", "grep -q done g", do=f"wait {gate}\nwrite g done")
    run = workshop.start("--html", str(page))
    workshop.wait_for("the page", lambda: page.exists() and "task-001 completed" in page.read_text())
    assert '<meta http-equiv="refresh"' in page.read_text()
    gate.touch()

    assert run.wait() == 0

    last = page.read_text()
    assert '<meta http-equiv="refresh"' not in last
    assert "task-002 completed" in last
    assert "+done" in last


def test_a_page_that_cannot_be_written_is_said_before_the_run(workshop: Workshop) -> None:
    workshop.file_task("f")
    said = workshop.run("--html", str(workshop.top / "nowhere/page.html"))
    assert said.returncode == 7
    assert "nowhere/page.html cannot be written" in said.stderr
    assert f"hint: Make the directory {workshop.top / 'nowhere'} first." in said.stderr
    assert workshop.statuses() == {"task-001": "pending"}


def test_a_file_of_the_users_is_not_replaced_and_a_link_is_followed(workshop: Workshop) -> None:
    workshop.file_task("f")
    before = workshop.read("README.md")
    for typed in (("report",), ("run", "--agent-command", "true")):
        said = workshop(*typed, "--html", "README.md")
        assert said.code == 8, said.text
        assert "README.md is not a page of harness" in said.text
    assert workshop.read("README.md") == before
    pipe = workshop.top.parent / "pipe"
    os.mkfifo(pipe)
    assert "is not a file, so it is not replaced" in workshop("report", "--html", str(pipe)).text
    assert pipe.is_fifo()
    page, link = (workshop.top.parent / name for name in ("page.html", "link.html"))
    page.touch()
    link.symlink_to(page)
    for _ in range(2):
        workshop.ok("report", "--html", str(link))
    assert link.is_symlink()
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_the_bars_of_a_worker_whose_work_waits_lie_side_by_side(project: Project, agent: Agent) -> None:
    page = project.top / "page.html"
    agent.ok("add", "One", "--validate", "false")
    lines = [OPENED]
    for task, began in (("t1", 0), ("t2", 30), ("t3", 60)):
        own = {"worker": 1, "at": 1e9 + began, "task": task}
        lines += [{"event": "claimed", **own, "title": "A", "attempt": 1}, {"event": "queued", **own}]
    lines += [
        {"event": "ended", "worker": 0, "at": 1e9 + 90, "task": task, "status": "completed", "message": ""}
        for task in ("t1", "t2", "t3")
    ]
    record(project, lines)
    agent.ok("report", "--html", "page.html")

    rows = [attributes for tag, attributes in Page(page).tags if tag == "rect" and attributes.get("y") == "3"]
    bars = sorted((float(each["x"] or 0), float(each["width"] or 0)) for each in rows)
    assert len(bars) == 3
    assert all(x + width <= later + 0.2 for (x, width), (later, _) in pairwise(bars))
