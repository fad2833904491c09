"""Installed as a package, harness is whole: every module, the schemas, and the command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tomlkit

from harness_lib import __version__
from harness_lib.system.install import launcher
from tests.launcher.launching import CHECKOUT, run


def files(folder: Path) -> set[str]:
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {str(path) for path in paths if "__pycache__" not in path.parts}


@pytest.mark.release
def test_an_installed_harness_is_whole_and_runs_anywhere(installed: Path, tmp_path: Path) -> None:
    (package,) = installed.glob("lib/python*/site-packages/harness_lib")
    schemas = {f"schemas/{name}" for name in files(CHECKOUT / "schemas")}
    assert files(package) == files(CHECKOUT / "harness_lib") | schemas
    said = run(installed / "bin/harness", "--version", env={}, cwd=tmp_path)
    assert said.code == 0, said.err
    assert __version__ in said.out


def test_uv_builds_the_package_anew_where_any_file_of_it_has_changed() -> None:
    """By itself it takes what it has built of a checkout as long as `pyproject.toml` stays as it is."""
    keys = tomlkit.parse((CHECKOUT / "pyproject.toml").read_text()).unwrap()["tool"]["uv"]["cache-keys"]
    watched = {str(path.relative_to(CHECKOUT)) for key in keys for path in CHECKOUT.glob(key["file"])}

    parts = {f"{name}/{file}" for name in ("harness_lib", "schemas") for file in files(CHECKOUT / name)}
    assert {"pyproject.toml", *parts} <= watched


@pytest.mark.parametrize(
    ("field", "found"), [("dependencies", launcher.DEPENDENCIES), ("hs", launcher.DEPENDENCIES_OF_HS)]
)
def test_a_child_finds_every_package_that_is_needed(field: str, found: tuple[str, ...]) -> None:
    """Also where pip has put them into several directories."""
    text = (CHECKOUT / "pyproject.toml").read_text()
    packages = re.findall(r'^  "([\w-]+)', text.split(f"\n{field} = [\n")[1].split("\n]")[0], re.MULTILINE)
    modules = {"agent-client-protocol": "acp", "markdown-it-py": "markdown_it", "PyYAML": "yaml"}

    assert {modules.get(name, name) for name in packages} <= set(found)
