"""Workers that cannot start: the run says so once, with the cause, and `doctor` finds it too."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from tests.runs.workshop import COMMAND, Workshop

CAUSE = "ModuleNotFoundError: No module named 'a_module_that_is_not_there'"


@pytest.fixture
def crippled(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a harness whose commands work, and whose workers lack a module."""
    copy = tmp_path / "crippled"
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("harness_lib", "schemas"):
        shutil.copytree(CHECKOUT / name, copy / name, ignore=ignored)
    worker = copy / "harness_lib" / "runs" / "worker.py"
    worker.write_text("import a_module_that_is_not_there\n", encoding="utf-8")
    return {"PYTHONPATH": str(copy)}


def test_a_first_worker_that_cannot_start_ends_the_run(workshop: Workshop, crippled: dict[str, str]) -> None:
    for name in ("a", "b"):
        workshop.file_task(name)

    said = workshop.interpreted("run", "--agent-command", COMMAND, "-j", "2", **crippled)

    assert said.returncode == 7
    assert "Traceback" not in said.stdout + said.stderr
    assert " ".join((said.stdout + said.stderr).split()).count(CAUSE) == 1
    assert "A worker cannot start" in said.stderr
    assert set(workshop.statuses().values()) == {"pending"}
    workshop.nothing_is_left_over()

    said = workshop.interpreted("doctor", "--json", **crippled)
    assert said.returncode == 1
    bad = [each["what"] for each in json.loads(said.stdout)["found"] if each["level"] == "bad"]
    assert [CAUSE in each for each in bad] == [True], bad


def test_doctor_is_content_with_a_worker_that_starts(workshop: Workshop) -> None:
    findings = workshop("doctor", "--json").json["found"]
    assert [each["level"] for each in findings if "worker" in each["what"]] == ["ok"]
