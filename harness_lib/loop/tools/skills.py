"""Skills: directories with a SKILL.md, told to the model by name and loaded when it asks for one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness_lib.loop import disk, trust
from harness_lib.loop.plugins import Result
from harness_lib.loop.runtime import Runtime, once
from harness_lib.loop.tools.builtin import Builtin, ToolError, text_of
from harness_lib.system.place import data_home

if TYPE_CHECKING:
    from harness_lib.loop.piped import Json

# The skill about the task list, if hs runs from a checkout.
_OURS = Path(data_home.HOME, "SKILL.md")
_RESOURCES = ("scripts", "references", "assets")
# A value on one line, in quotes without escapes or without quotes; the next line does not go on with it.
_PLAIN = (
    r'(?m)^(name|description):[ \t]+(?:"([A-Za-z](?:[^"\\\n]*[^"\\\s\'])?)"|([A-Za-z](?:[^\n]*[^"\s\'])?))'
    r"[ \t]*$(?!\n(?:[ \t]*\n)*[ \t])"
)
_KEY = r"(?m)^\W*(?:name|description)\W*:"
_READ = ("name", "description")
_WORDS = frozenset(("false", "no", "null", "off", "on", "true", "yes"))


class Skill(NamedTuple):
    """A SKILL.md: what its frontmatter says, escaped for the catalogue, and where it is."""

    name: str
    description: str
    path: Path
    body: str


@once
def every(runtime: Runtime) -> dict[str, Skill]:
    """Return the skills by name, sorted; the most local of a name counts.

    A project's takes the place of one of the user's own only when the project is trusted.
    """
    by_name: dict[str, Skill] = {}
    ours = disk.remembered(runtime.kept, _OURS, _read)
    if ours and not runtime.without_core:
        by_name[ours.name] = ours
    own = set(by_name)
    for directory, owner in _directories(runtime):
        for name in disk.visible_names(str(directory)):
            path = directory / name / "SKILL.md"
            skill = disk.remembered(runtime.kept, path, _read) if trust.has_text(owner, path) else None
            if not skill:
                continue
            if not owner:
                own.add(skill.name)
            elif skill.name in own and not trust.is_trusted(runtime, str(directory.parent)):
                runtime.notice_once(
                    f"the skill {skill.name} in {skill.path.parent} is left out: "
                    "you have one of that name. To use the project's, look at it and run: hs trust"
                )
                continue
            by_name[skill.name] = skill
    return dict(sorted(by_name.items()))


def called(runtime: Runtime, message: str) -> str:
    """Return `message`; for /NAME the text of that skill, with the words that follow."""
    typed = message.strip()
    name = typed.split(maxsplit=1)[0] if typed else ""
    skill = every(runtime).get(name[1:]) if name.startswith("/") else None
    if skill is None:
        return message
    words = typed[len(name) + 1 :]
    body = skill.body.replace("$ARGUMENTS", words).replace("${CLAUDE_SKILL_DIR}", str(skill.path.parent))
    return f"{_text(skill, body)}\n\nThe user typed: {typed}"


def _directories(runtime: Runtime) -> list[tuple[Path, Path | None]]:
    """Return the directories of skills, each with the project that it belongs to."""
    work_directory = runtime.work_directory
    root = trust.project_root(runtime, work_directory)
    packs = [path for path in map(Path, runtime.sources) if path.name != ".harness" and path != runtime.home]
    directories = [(path / "skills", trust.project_of_source(runtime, str(path))) for path in packs]
    way = (*reversed(work_directory.parents), work_directory)
    person = Path(runtime.env.get("HOME") or runtime.home.parent)
    for directory in way if person in way else [person, *way]:
        inside = root if directory.is_relative_to(root) else directory
        owner = None if directory == person else inside
        directories += [(directory / name / "skills", owner) for name in (".harness", ".agents")]
    if (runtime.home / "skills", None) not in directories:
        directories.insert(len(packs), (runtime.home / "skills", None))
    return directories


def _read(path: Path) -> Skill | None:
    lines = disk.read_text(path).splitlines()
    end = next((at for at, line in enumerate(lines) if at and line.strip() == "---"), 0)
    if not end or lines[0].strip() != "---":
        return None
    head, body = _values("\n".join(lines[1:end])), "\n".join(lines[end + 1 :])
    name, description = head.get("name"), head.get("description")
    if not isinstance(name, str) or not name.strip():
        return None
    # Any other value of YAML may be endless as text.
    described = description if isinstance(description, str) else ""
    escaped = " ".join(described.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return Skill(name.strip(), escaped, path, body.strip("\n"))


def _values(head: str) -> dict[str, Any]:
    """Read YAML, or invalid YAML line by line: many skills have a colon in their description."""
    plain = {match[1]: match[2] or match[3] for match in re.finditer(_PLAIN, head)}
    # YAML may read these as something other than this text.
    unclear = any(
        ": " in value or " #" in value or value.endswith(":") or value.lower() in _WORDS
        for value in plain.values()
    )
    if len(plain) == len(re.findall(_KEY, head)) == len(_READ) and not unclear:
        return plain
    import yaml  # noqa: PLC0415 (takes as long to load as all the rest of hs)

    try:
        # The one in C is ten times as fast; not every build of the package has it.
        values = yaml.load(head, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 (both are safe)
    except yaml.YAMLError:
        values = None
    if isinstance(values, dict):
        return values
    pairs = (line.split(":", 1) for line in head.splitlines() if ":" in line and not line.startswith(" "))
    return {key.strip(): value.strip().strip("\"'") for key, value in pairs}


def _load(runtime: Runtime, tool_input: Json) -> Result:
    name = text_of(tool_input, "name")
    skill = every(runtime).get(name)
    if not skill:
        raise ToolError(f"skill '{name}' not found")
    return Result(_text(skill, skill.body))


def _text(skill: Skill, body: str) -> str:
    """Return the skill as the model gets it: `body`, and where its files are."""
    directory = skill.path.parent
    parts = [directory / part for part in _RESOURCES]
    # A link may lead to the root of the file system.
    contents = [path for part in parts if not part.is_symlink() for path in sorted(part.rglob("*"))]
    files = [path for path in contents if path.is_file()]
    lines = [f'<skill name="{skill.name}">', body, "", f"Skill directory: {directory}"]
    if files:
        lines += [
            "<skill-resources>",
            *(str(path.relative_to(directory)) for path in files),
            "</skill-resources>",
        ]
    return "\n".join([*lines, "</skill>"])


TOOL = Builtin(
    name="skill",
    description="Load a skill: the instructions of one that <available-skills> lists.",
    inputs={"name": "The name of the skill"},
    function=_load,
    reads=True,
    offered=lambda runtime: bool(every(runtime)),
)
