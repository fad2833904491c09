"""What the model is told first: prompts, instructions of directories, skills; the same in every request."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness_lib.loop import discovery, plugins, trust
from harness_lib.loop.piped import Json
from harness_lib.loop.tools import skills
from tests.loop.conftest import Go
from tests.loop.foreign_plugins import write_echo_pack
from tests.loop.in_process import begun
from tests.loop.servers.script import say
from tests.loop.source_files import at_home, write


def assembled(cwd: Path) -> Json:
    """Return what the stage `assemble` makes in `cwd`."""
    return plugins.call(begun(cwd, HARNESS_PROVIDER="openai", HARNESS_MODEL="m"), "assemble", {})


def test_instructions_go_from_home_and_the_repositorys_root_to_here_each_once(home: Path, repo: Path) -> None:
    for directory, text in [(home, "of home"), (repo, "of the root"), (repo / "a/b", "nearest")]:
        write(directory / "AGENTS.md", f"{text}\n")
    write(repo / "a/CLAUDE.md", "in between\n")
    write(repo / "a/b/CLAUDE.md", "not this one\n")
    write(repo.parent / "AGENTS.md", "of somebody else\n")

    system = assembled(repo / "a/b")["system"]

    places = [system.index(text) for text in ("of home", "of the root", "in between", "nearest")]
    assert places == sorted(places)
    assert "not this one" not in system
    assert "of somebody else" not in system


def test_long_instructions_are_cut_and_say_so(repo: Path) -> None:
    write(repo / "AGENTS.md", "x" * 40_000)

    system = assembled(repo)["system"]

    assert "x" * 32 * 1024 in system
    assert "x" * (32 * 1024 + 1) not in system
    assert f"{repo / 'AGENTS.md'} goes on" in system


def test_a_clone_fills_no_memory_with_a_file_of_gigabytes(repo: Path) -> None:
    for name in ("prompts/a.md", "skills/huge/SKILL.md", "settings.conf"):
        path = write(repo / ".harness" / name, "the beginning\n")
        os.truncate(path, 3 * 1024**3)

    assembled(repo)

    # In KiB on Linux; each file once would be 3 GiB.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2 * 1024**2
    system = assembled(repo)["system"]
    assert "the beginning" in system
    assert len(system) < 512 * 1024
    assert f"{repo / '.harness' / 'prompts' / 'a.md'} goes on" in system


def test_prompts_of_sources_stand_in_order(project: Path) -> None:
    write("prompts/20-b.md", "second")
    write("prompts/10-a.md", "first")
    write(project / ".harness/prompts/00.md", "third")

    system = assembled(project)["system"]

    assert system.index("first") < system.index("second") < system.index("third")


def test_skills_are_told_by_name_and_their_text_is_escaped(home: Path, project: Path) -> None:
    for place, name, text in [
        (home / ".harness", "zeta", "of <home>"),
        (project / ".agents", "alpha", "a: colon"),
        (project / ".harness", "beta", "of the <project>"),
    ]:
        write(place / "skills" / name / "SKILL.md", f"---\nname: {name}\ndescription: {text}\n---\nbody\n")

    payload = assembled(project)

    catalogue = payload["system"].split("<available-skills>")[1]
    assert catalogue.index('name="alpha"') < catalogue.index('name="zeta"')
    assert "of the &lt;project&gt;" in catalogue
    assert "of &lt;home&gt;" in catalogue
    assert "skill" in [tool["name"] for tool in payload["tools"]]


@pytest.mark.parametrize("typed", ["/ship the\nboat", "/ship\nthe\nboat", " /ship  the\nboat"])
def test_a_skill_is_called_with_the_words_behind_it(project: Path, typed: str) -> None:
    write("skills/ship/SKILL.md", "---\nname: ship\ndescription: d\n---\nShip: $ARGUMENTS\n")
    run = begun(project)

    said = " ".join(skills.called(run, typed).split())

    assert said.startswith('<skill name="ship"> Ship: the boat Skill directory')


def test_a_skill_of_a_project_takes_the_place_of_the_users_own_only_when_it_is_trusted(project: Path) -> None:
    for source in (at_home(), project / ".harness", project / ".agents", project / ".harness/plugins/p"):
        write(source / "skills/deploy/SKILL.md", f"---\nname: deploy\ndescription: d\n---\n{source}\n")
    write(project / ".harness/skills/other/SKILL.md", "---\nname: other\ndescription: o\n---\nRead anyway.\n")
    run = begun(project)
    said: list[str] = []
    run.notices.append(said.append)

    def used() -> str:
        discovery.refresh(run)
        assert skills.every(run)["other"].body == "Read anyway."
        return skills.every(run)["deploy"].body

    untrusted, notices = used(), len(said)
    trust.save(run, [str(project / ".harness")])
    trusted = used()
    write(project / ".harness/skills/deploy/SKILL.md", "---\nname: deploy\ndescription: d\n---\nchanged\n")
    changed = used()

    own = str(at_home())
    assert [untrusted, trusted, changed] == [own, str(project / ".harness"), own]
    assert (notices, "hs trust" in said[0]) == (2, True)


@pytest.mark.parametrize(
    "head",
    [
        "name: deploy\ndescription: Ship it now",
        "name: 'deploy'\ndescription: \"Ship it now\"",
        "name: deploy\ndescription: >-\n  Ship it\n  now\nmetadata:\n  author: somebody",
        "name: deploy\ndescription: |\n  Ship it\n  now",
        "description: Ship it now\nname: deploy\nallowed-tools: [bash, read_file",
        "name: deploy\r\ndescription: Ship it now\r",
    ],
)
def test_the_head_of_a_skill_is_read_as_people_write_it(project: Path, head: str) -> None:
    write("skills/deploy/SKILL.md", f"---\n{head}\n---\nbody\n")

    catalogue = assembled(project)["system"].split("<available-skills>")[1]

    assert 'name="deploy"' in catalogue
    assert "\nShip it now\n" in catalogue


_VALUE = st.text(alphabet="ab :#\"'\\-\n\t>|&*!%@`{}[],?yesno", max_size=8)
_LINE = st.one_of(*(_VALUE.map(text.format) for text in ("name: {}", 'name: "{}"', "x: {}", "  {}", "{}")))


@given(st.lists(_LINE, max_size=3), _VALUE)
def test_frontmatter_that_is_read_without_yaml_says_the_same(lines: list[str], value: str) -> None:
    """It takes as long to load as all the rest, and most skills have two plain lines."""
    head = "\n".join([*lines, "name: one", f"description: {value}"][-4:])
    try:
        values = yaml.safe_load(head)
    except yaml.YAMLError:
        values = None
    if isinstance(values, dict):
        read = skills._values(head)
        assert [_as_read(read.get(key)) for key in ("name", "description")] == [
            _as_read(values.get(key)) for key in ("name", "description")
        ]


def _as_read(value: object) -> object:
    # YAML's loaders in C and in Python differ in whether a lone `!` is a text; an empty one counts as none.
    return (" ".join(value.split()) or None) if isinstance(value, str) else None


def test_a_skill_is_parsed_once_and_again_when_it_has_changed(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("skills/deploy/SKILL.md", "---\nname: deploy\ndescription: First\n---\nAsk.\n")
    run = begun(project)
    parsed: list[str] = []
    original = skills._values

    def counted(head: str) -> dict[str, Any]:
        parsed.append(head)
        return original(head)

    monkeypatch.setattr(skills, "_values", counted)

    first = []
    for _ in range(5):
        discovery.refresh(run)
        first.append(skills.every(run)["deploy"].description)
    once = [head for head in parsed if "deploy" in head]
    path.write_text("---\nname: deploy\ndescription: Another one\n---\nAsk.\n")

    assert (first, len(once)) == (["First"] * 5, 1)
    discovery.refresh(run)
    assert skills.every(run)["deploy"].description == "Another one"


def test_tools_stand_by_name(project: Path) -> None:
    names = [tool["name"] for tool in assembled(project)["tools"]]

    assert names == sorted(names)


def test_the_hooks_of_a_provider_that_is_not_used_stay_away(go: Go) -> None:
    write_echo_pack()
    _, answer = go(say("Mine."), env={"HARNESS_PROVIDER": "openai"})
    assert answer.out == "Mine.\n", answer.err
