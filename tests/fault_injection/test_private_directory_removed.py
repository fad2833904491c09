"""`.harness/` may be deleted at any time, also between our making it and our writing there."""

from __future__ import annotations

from pathlib import Path

from tests.fault_injection import faulty
from tests.run_to_end import Said
from tests.verbs.project import Agent, Project

VANISHING = "import sys; from tests.fault_injection import vanishing; sys.exit(vanishing.main(sys.argv[1:]))"


def _type(agent: Agent, moments: Path, *argv: str) -> Said:
    return faulty.forked_as(agent, VANISHING, str(agent.cwd / ".harness"), str(moments), *argv, "--json")


def test_no_verb_fails_because_the_directory_goes(project: Project, agent: Agent, tmp_path: Path) -> None:
    moments = tmp_path / "moments"
    for code, *argv in (
        (0, "add", "One", "--validate", "echo looked; test -f one"),
        (0, "start"),
        (0, "claim"),
        (0, "checkpoint", "task-001", "1/2", "half"),
        (0, "validate", "task-001"),
        (1, "finish"),
        (0, "claim"),
        (0, "finish"),
        (0, "status"),
        (0, "show", "task-001"),
        (0, "stop"),
    ):
        if argv[0] == "validate" or (code, *argv) == (0, "finish"):
            project.put("one", "made\n")
        said = _type(agent, moments, *map(str, argv))
        assert said.code == code, (argv, said.text)
        assert not [warning for warning in said.json["warnings"] if "written" in warning], (argv, said.text)
        if code == 1:
            assert "looked" in said.json["message"]
        if argv[0] == "validate":
            (project.top / "one").unlink()

    assert project.task()["status"] == "completed"
    assert project.task()["attempts"] == 1
    _were(moments, "open /state.lock", "os.mkdir /logs", "open /logs/task-001/1.log", "os.mkdir /generations")


def _were(moments: Path, *expected: str) -> None:
    """Fail if these are not among the moments: then nothing has been tried."""
    names = moments.read_text().splitlines()
    missing = [name for name in expected if name not in names]
    assert not missing, "\n".join(names)
