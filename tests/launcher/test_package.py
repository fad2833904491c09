"""Installed as a package, harness is whole: every module, the schemas, and the command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tomlkit

from harness_lib import __version__
from harness_lib.system.install import launcher
from tests.launcher.launching import CHECKOUT, run


def python_modules(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*.py")}


def test_every_folder_and_every_file_that_is_no_module_is_packaged() -> None:
    """That what is packaged is there once it is installed is tried in a release."""
    text = (CHECKOUT / "pyproject.toml").read_text()
    packaging = tomlkit.parse(text).unwrap()["tool"]["setuptools"]
    library = CHECKOUT / "harness_lib"
    files = [path for path in library.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    modules = {path.parent for path in files if path.suffix == ".py" and "bundled" not in path.parts}
    data = {
        path
        for package, patterns in packaging["package-data"].items()
        for pattern in patterns
        for path in (CHECKOUT / package.replace(".", "/")).glob(pattern)
    }

    names = {".".join(folder.relative_to(CHECKOUT).parts) for folder in modules}
    assert set(packaging["packages"]) == {*names, "harness_lib.schemas"}
    assert [
        path for path in files if path.parent not in modules or path.suffix != ".py" if path not in data
    ] == []


@pytest.mark.release
def test_an_installed_harness_is_whole_and_runs_anywhere(installed: Path, tmp_path: Path) -> None:
    (package,) = installed.glob("lib/python*/site-packages/harness_lib")
    assert python_modules(package) == python_modules(CHECKOUT / "harness_lib")
    for schema in (CHECKOUT / "schemas").glob("*.json"):
        assert (package / "schemas" / schema.name).read_bytes() == schema.read_bytes()
    assert (package / "system/install/requirements.txt").exists()
    said = run(installed / "bin/harness", "--version", env={}, cwd=tmp_path)
    assert said.code == 0, said.err
    assert __version__ in said.out


@pytest.mark.parametrize(
    ("field", "found"), [("dependencies", launcher.DEPENDENCIES), ("hs", launcher.DEPENDENCIES_OF_HS)]
)
def test_a_child_finds_every_package_that_is_needed(field: str, found: tuple[str, ...]) -> None:
    """Also where pip has put them into several directories."""
    text = (CHECKOUT / "pyproject.toml").read_text()
    packages = re.findall(r'^  "([\w-]+)', text.split(f"\n{field} = [\n")[1].split("\n]")[0], re.MULTILINE)
    modules = {"agent-client-protocol": "acp", "markdown-it-py": "markdown_it", "PyYAML": "yaml"}

    assert {modules.get(name, name) for name in packages} <= set(found)
