"""The project in `examples/slugs`: its plan is imported, run to its end and reported, as its page says."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import commit_all, put, sh

EXAMPLE = CHECKOUT / "examples/slugs"
PLAN = "docs/superpowers/plans/2026-11-20-longer-titles.md"
# Reads its brief, as an agent does: the test that stands there, and which of the three tasks it is.
AGENT = '''
import pathlib, re, sys
brief = re.sub(r"(?m)^ *[|] ?", "", sys.stdin.read())
code = re.search(r"```python\\n(.*?)```", brief, re.S)[1]
name = re.search(r"Create: `(tests/test_\\w+.py)`", brief)[1]
pathlib.Path(name).write_text(code)
source = pathlib.Path("slugs/__init__.py")
text = source.read_text()
if "accents" in name:
    text = text.replace("import re", "import re\\nimport unicodedata")
    plain = 'unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()'
    text = text.replace("title.lower()", plain + ".lower()")
elif "length" in name:
    text = text.replace("title: str)", "title: str, longest: int = 60)").replace("return re", "whole = re")
    text += """    words = whole.split("-")
    while len(words) > 1 and len("-".join(words)) > longest:
        words.pop()
    return "-".join(words)[:longest]
"""
else:
    text += """

def free(title: str, taken: set[str], longest: int = 60) -> str:
    made, number = slug(title, longest), 1
    while made in taken:
        number += 1
        made = f"{slug(title, longest - len(str(number)) - 1)}-{number}"
    return made
"""
source.write_text(text)
'''


@pytest.fixture
def slugs(home: Path, tmp_path: Path) -> Iterator[Workshop]:
    top = tmp_path / "slugs"
    shutil.copytree(EXAMPLE, top, ignore=shutil.ignore_patterns("__pycache__"))
    sh(top, "init", "-q", "-b", "main")
    commit_all(top, "Begin")
    made = Workshop(top, home)
    made.ok("init")
    yield made
    made.close()


@pytest.mark.release
def test_an_evening_and_a_morning(slugs: Workshop, tmp_path: Path) -> None:
    table = slugs("import", PLAN, "--dry-run").out
    assert table.splitlines()[0] == "superpowers plan: 3 tasks, 3 with a check"
    page = (CHECKOUT / "docs/plans.md").read_text()
    assert table.partition("\nnext:")[0].strip() in page
    slugs.ok("import", PLAN, "--yes", HARNESS_TRUST="1")
    put(tmp_path / "agent.py", AGENT)

    slugs.ends(0, agent=shlex.join([sys.executable, str(tmp_path / "agent.py")]))

    slugs.all_is_well()
    done = subprocess.run([sys.executable, "-m", "unittest"], cwd=slugs.top, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr
    report = slugs("report").out
    assert "3 tasks: 3 completed. Nothing was lost." in report
    settings = json.loads(slugs("config", "--json").out)["settings"]
    assert settings["max-hours"] == {"value": 2, "origin": str(slugs.top / "harness.toml")}
