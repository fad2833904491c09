"""Of `.harness/` git ignores what is ours, name by name; a project's plugins beside it can be committed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import harness_lib
from harness_lib.system import state_lock
from harness_lib.system.place import find_root, own_files
from tests.runs.workshop import Workshop
from tests.verbs.project import Project

PLUGINS = (
    "tools/look",
    "hooks.d/done/50-log",
    "providers/ours.conf",
    "settings.conf",
    "mcp.json",
    "models.conf",
)


def hidden(workshop: Workshop) -> list[str]:
    """Return what lies in the private directory, as git sees it; it must hide all."""
    shown = workshop.git.run("status", "--porcelain", "--untracked-files=all", "--", ".harness").stdout
    assert shown == b""
    return sorted(path.name for path in (workshop.top / ".harness").iterdir())


def test_plugins_are_seen_by_git_and_nothing_of_ours(tmp_path: Path) -> None:
    workshop = Workshop.make(tmp_path)
    workshop.file_task("one")
    workshop.add("Fails", "echo no; exit 1", "--max-attempts", "1")
    workshop.run("-j", "2")
    workshop.ok("check")
    own_files.write_note(own_files.note_path(str(workshop.top), "beats", "x"), b"")
    own_files.keep_bug(str(workshop.top), "report")

    assert {"generations", "logs", "summary.json", "state.lock", "beats"} <= set(hidden(workshop))
    for name in PLUGINS:
        path = workshop.top / ".harness" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine\n")
    seen = workshop.git.run("status", "--porcelain", "--untracked-files=all").stdout.decode()
    assert {line[3:] for line in seen.splitlines() if ".harness" in line} == {
        f".harness/{name}" for name in PLUGINS
    }
    workshop.git.run("add", *(f".harness/{name}" for name in PLUGINS))
    assert not workshop.ok("status")["warnings"]


def test_every_name_in_the_directory_that_the_code_has_is_hidden() -> None:
    source = Path(harness_lib.__file__).parent
    named = {f"{kind}/" for kind in own_files.KINDS} | {f"{find_root.GENERATIONS}/"}
    for path in source.rglob("*.py"):
        if not {"hs", "loop"} & {*path.relative_to(source).parts}:
            named |= set(re.findall(r'private / "([\w.-]+)"', path.read_text()))
    assert {"logs", "state.lock", "summary.json"} < named
    patterns = [
        re.compile(re.escape(name).replace(r"\*", ".*").removesuffix("/") + "/?")
        for name in own_files.PATTERNS
    ]
    assert not [name for name in named if not any(pattern.fullmatch(name) for pattern in patterns)]


OF_0_1_0 = own_files.RULES
for _name in (b"held/", b"runs/", b"store*.json"):
    OF_0_1_0 = OF_0_1_0.replace(b"/" + _name + b"\n", b"")


@pytest.mark.parametrize(
    ("before", "renewed"),
    [
        *((b"*\n", True), (None, True), (b"", False), (b"*\n!tools\n", False), (b"/mine\n", False)),
        *((OF_0_1_0, True), (OF_0_1_0.replace(b"/logs/\n", b""), False), (OF_0_1_0 + b"/mine\n", False)),
    ],
)
def test_only_rules_of_ours_are_renewed(project: Project, before: bytes | None, *, renewed: bool) -> None:
    rules = project.top / ".harness/.gitignore"
    rules.unlink(missing_ok=True)
    if before is not None:
        rules.write_bytes(before)

    project.agent().ok("add", "One", "--validate", "true")

    assert rules.read_bytes() == (own_files.RULES if renewed else before)


def test_rules_that_are_a_link_are_left_alone(tmp_path: Path) -> None:
    private, elsewhere = tmp_path / ".harness", tmp_path / "elsewhere"
    private.mkdir(mode=0o700)
    elsewhere.write_bytes(b"*\n")
    (private / ".gitignore").symlink_to(elsewhere)

    with state_lock.StateLock(private / "state.lock"):
        assert elsewhere.read_bytes() == b"*\n"
