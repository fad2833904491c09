"""The tool that loads a skill."""

from __future__ import annotations

from pathlib import Path

from harness_lib.loop.plugins import Result
from tests.loop.tools.conftest import Do


def test_a_skill_is_loaded_by_its_name(do: Do, project: Path) -> None:
    skill = project / ".agents" / "skills" / "cook"
    (skill / "references").mkdir(parents=True)
    (skill / "references" / "salt.md").write_text("salt", encoding="utf-8")
    head = "---\nname: cooking\ndescription: How to cook: well\n---\n"
    (skill / "SKILL.md").write_text(f"{head}Boil it.\n", encoding="utf-8")

    result = do("skill", name="cooking")

    assert "Boil it." in result.text
    assert "references/salt.md" in result.text
    assert do("skill", name="baking") == Result("error: skill 'baking' not found", error=True)
