"""`hs doctor`: what may be wrong with hs here, each with what to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.loop.conftest import Hs
from tests.loop.source_files import write_program

READY = {"OPENAI_API_URL": "http://127.0.0.1:9/v1/chat/completions", "HARNESS_MODEL": "m"}


def test_where_all_is_well_it_says_so(hs: Hs) -> None:
    answer = hs("doctor", env=READY)

    assert answer.code == 0, answer.out
    assert "the provider openai can be asked, model m" in answer.out
    assert "none of them broken" in answer.out
    assert "->" not in answer.out


def test_without_a_provider_it_says_how_to_get_one(hs: Hs) -> None:
    answer = hs("doctor")

    assert answer.code == 1
    assert "no ready provider" in answer.out
    assert "-> hs auth set" in answer.out


def broken_tool(home: Path, _: Path) -> None:
    write_program(home / ".harness" / "tools" / "odd", "#!/bin/sh\necho nothing\n")


def not_executable(home: Path, _: Path) -> None:
    hook = home / ".harness" / "hooks.d" / "done" / "odd"
    hook.parent.mkdir(parents=True)
    hook.write_text("#!/bin/sh\ncat\n", encoding="utf-8")


def readable_key(home: Path, _: Path) -> None:
    path = home / ".harness" / ".auth.json"
    path.parent.mkdir()
    path.write_text("{}", encoding="utf-8")
    path.chmod(0o644)


def untrusted(_: Path, project: Path) -> None:
    write_program(project / ".harness" / "tools" / "odd", "#!/bin/sh\ntouch ran\n")


def unknown_mode(home: Path, _: Path) -> None:
    (home / ".harness").mkdir()
    (home / ".harness" / "settings.conf").write_text("approve=perhaps\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("spoil", "trouble", "cure"),
    [
        (broken_tool, "tools/odd is left out: its schema is none", "--schema"),
        (not_executable, "hooks.d/done/odd is no plugin: it is not executable", "chmod +x "),
        (readable_key, ".auth.json can be read by others", "chmod 600 "),
        (untrusted, ".harness are not used", "hs trust"),
        (unknown_mode, "approve=perhaps is none of auto, ask, read-only", "settings.conf"),
    ],
)
def test_each_trouble_is_found_with_its_cure(
    hs: Hs, home: Path, project: Path, spoil: Callable[[Path, Path], None], trouble: str, cure: str
) -> None:
    spoil(home, project)

    findings = json.loads(hs("doctor", "--json", env=READY).out)

    (finding,) = [each for each in findings if each["cure"]]
    assert trouble in finding["what"]
    assert cure in finding["cure"]
    assert not (project / "ran").exists()
