"""A field of the list is said once, in `harness_lib/records`; everything else follows from it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import pytest

from docs import fields as written
from harness_lib.records import given
from harness_lib.records.fields import columns
from harness_lib.state import codec, reading, schema
from harness_lib.task import State, Task
from tests.state.documents import every_field

ROOT = Path(__file__).parents[2]
# What a newcomer adds: one line in one file.
ANCHOR = "    claimed_by: Annotated["
NEW = """\
    reviewer: Annotated[
        str | None,
        About(
            STRING,
            "Who looks at the work.",
            typed=Typed("--reviewer", "NAME", "who looks at the work", words=("reviewer", "review")),
        ),
    ] = None
"""
USES_IT = """
import json, subprocess, sys
from harness_lib.state import codec, reading, schema
document = {"tasks": [{"id": "task-1", "status": "pending", "reviewer": "Ada"}]}
state = codec.decode(document)
assert state.tasks[0].reviewer == "Ada" and not state.tasks[0].extra
assert reading.encode(state)["tasks"][0]["reviewer"] == "Ada"
for wrong in (7, True, ["Ada"]):
    document["tasks"][0]["reviewer"] = wrong
    assert schema.problems(document), wrong
    try:
        codec.decode(document)
    except codec.ContractError as error:
        assert "tasks[0].reviewer" in str(error)
    else:
        raise AssertionError(wrong)
from harness_lib.core.import_parse import json_tasks, markdown_tasks
(draft,) = markdown_tasks("- [ ] Do it\\n  - review: Ada\\n").items
assert draft.document["reviewer"] == "Ada"
"""


@pytest.mark.parametrize("name", written.texts())
def test_what_is_checked_in_is_what_the_records_say(name: str) -> None:
    is_there = (ROOT / name).read_text()
    assert is_there == written.texts()[name], "type: python -m docs.fields"


def test_each_text_is_written_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("schemas", "docs"):
        (tmp_path / folder).mkdir()
    monkeypatch.setattr(written, "CHECKOUT", tmp_path)

    written.main()

    files = {
        str(file.relative_to(tmp_path)): file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()
    }
    assert files == {name: text.encode() for name, text in written.texts().items()}


def test_every_field_of_the_list_survives_reading_and_writing() -> None:
    document = every_field(State)
    state = codec.decode(document)
    assert reading.encode(state) == document
    assert reading.trusted(State)(document) == state
    assert codec.decode_rendered(reading.render(state), {})[0] == state
    assert schema.problems(document) == []


def test_a_list_of_defaults_says_no_more_than_the_protocol_asks_for() -> None:
    document = reading.encode(State(tasks=(Task("task-1"),)))
    always = [column.name for column in columns(Task) if column.always]
    assert list(document["tasks"][0]) == always
    assert codec.decode(document) == State(tasks=(Task("task-1"),))


def test_each_path_that_the_user_gives_is_set_and_read_back() -> None:
    task = Task("task-1")
    for field in given.FIELDS:
        mark = object()
        assert attrgetter(field.path)(given.with_values(task, {field.path: mark})) is mark


@pytest.mark.timeout(300)
def test_a_new_field_is_one_line_and_what_is_written_of_it(tmp_path: Path) -> None:
    """It is read, written, published, an option of two verbs and a word of check lists."""
    for name in ("harness_lib", "schemas", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    records = tmp_path / "harness_lib/records/task.py"
    before = records.read_text()
    assert before.count(ANCHOR) == 1
    records.write_text(before.replace(ANCHOR, NEW + ANCHOR))

    def python(*argv: str) -> str:
        # The folder it runs in comes first on the path, so that the copy is what is run.
        done = subprocess.run(
            [sys.executable, *argv], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    python("-m", "docs.fields")
    changed = {
        str(file.relative_to(tmp_path))
        for name in ("harness_lib", "schemas", "docs")
        for file in (tmp_path / name).rglob("*")
        if file.suffix in {".py", ".json", ".md"}
        and file.read_bytes() != (ROOT / file.relative_to(tmp_path)).read_bytes()
    }
    assert changed == {"harness_lib/records/task.py", *written.texts()}
    schema_of_it = json.loads((tmp_path / "schemas/harness-tasks.schema.json").read_bytes())
    assert schema_of_it["$defs"]["task"]["properties"]["reviewer"]["description"] == "Who looks at the work."
    assert "`--reviewer`" in (tmp_path / "docs/fields.md").read_text()
    python("-c", USES_IT)
    for verb in ("add", "edit"):
        assert "--reviewer NAME" in python("-m", "harness_lib", verb, "--help")
