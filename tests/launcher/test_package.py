"""Installed as a package, harness is whole: every module, the schemas, and the command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness_lib import __version__

CHECKOUT = Path(__file__).resolve().parents[2]

# As in launching.py: pip's own configuration says where the registry is.
REAL_ENVIRON = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def python_modules(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*.py")}


@pytest.mark.skipif(not (CHECKOUT / "harness_lib/cli/main.py").exists(), reason="no command line yet")
def test_an_installed_harness_is_whole_and_runs_anywhere(tmp_path: Path) -> None:
    # A copy, as a build leaves its traces in the folder it builds.
    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(CHECKOUT / name, source)
    for name in ("harness_lib", "schemas"):
        shutil.copytree(CHECKOUT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", str(source)]
    done = subprocess.run(pip, env=REAL_ENVIRON, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr

    (installed,) = venv.glob("lib/python*/site-packages/harness_lib")
    assert python_modules(installed) == python_modules(CHECKOUT / "harness_lib")
    for schema in (CHECKOUT / "schemas").glob("*.json"):
        assert (installed / "schemas" / schema.name).read_bytes() == schema.read_bytes()
    assert (installed / "system" / "requirements.txt").exists()
    said = subprocess.run(
        [venv / "bin" / "harness", "--version"],
        capture_output=True,
        encoding="utf-8",
        check=False,
        cwd=tmp_path,
    )
    assert said.returncode == 0, said.stderr
    assert __version__ in said.stdout
