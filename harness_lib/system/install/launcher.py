"""Start this program: with its private packages, and again as a child.

A child is started as the launcher starts the program, isolated and without `site`: it finds the standard
library, this package and its dependencies, and nothing else that the machine's Python may have.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from importlib.machinery import PathFinder
from pathlib import Path

from harness_lib import typed
from harness_lib.errors import EnvSetupError
from harness_lib.system.install import private_env
from harness_lib.system.place import data_home
from harness_lib.text import Strings

_HOME = Path(data_home.HOME)
_OF_SANDBOX = private_env.REQUIREMENTS.with_name("requirements-sandbox.txt")
_OF_POSTGRES = private_env.REQUIREMENTS.with_name("requirements-postgres.txt")
_OF_HS = _HOME / "harness_lib" / "loop" / "requirements.txt"
# Their own dependencies are in the same places.
DEPENDENCIES = ("filelock", "jinja2", "jsonschema", "markdown_it", "rich", "tomlkit")
DEPENDENCIES_OF_HS = ("acp", "httpx2", "mcp", "pathspec", "prompt_toolkit", "rich", "yaml")


def python(code: str, dependencies: Strings = DEPENDENCIES) -> list[str]:
    """Return the command that runs `code` with this interpreter, isolated, and this package importable."""
    setting = ["-X", f"pycache_prefix={sys.pycache_prefix}"] if sys.pycache_prefix else []
    packages = list(dict.fromkeys((str(_HOME), *_homes(dependencies))))
    # After the standard library, so that nothing can replace a part of it.
    return [sys.executable, *setting, "-I", "-S", "-c", f"import sys; sys.path += {packages!r}; {code}"]


def _homes(packages: Strings) -> Iterator[str]:
    """Yield the directories in which those of `packages` are that can be imported."""
    # Directories of PYTHONPATH are the user's, and skipped.
    foreign = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = [str(_HOME), *(entry for entry in sys.path if entry not in foreign)]
    specs = (PathFinder.find_spec(name, path) for name in packages)
    return (str(Path(spec.origin).parents[1]) for spec in specs if spec and spec.origin)


def harness() -> list[str]:
    """Return the command `harness`."""
    return python("from harness_lib.__main__ import begin; begin()")


def hs() -> list[str]:
    """Return the command `hs`."""
    return python("from harness_lib.hs.main import entry; entry()", DEPENDENCIES_OF_HS)


def adding(extra: str) -> str:
    """Return the command that adds the packages of `extra` where pip, or uv without pip, installed us."""
    python, has_pip = typed.word(sys.executable), PathFinder.find_spec("pip", sys.path)
    install = f"{python} -m pip install" if has_pip else f"uv pip install --python {python}"
    return f"{install} 'harness-skill[{extra}]'"


def nono(environ: Mapping[str, str]) -> str:
    """Return the directory of the package nono_py; make its environment if need be.

    An installed package has it or not. Raises EnvSetupError if it is missing or cannot be fetched.
    """
    home = next(_homes(("nono_py",)), None)
    if home is None and _is_bare():
        home = str(_fetched(environ, _OF_SANDBOX, once=True) / private_env.PACKAGES)
    if home is None:
        raise EnvSetupError(f"nono-py is not installed: {adding('sandbox')}")
    return f"{home}/nono_py"


def add_postgres(environ: Mapping[str, str]) -> None:
    """Make psycopg importable in this process; make its environment if need be.

    Raises EnvSetupError if it cannot be fetched, or if it is not installed with this package.
    """
    if PathFinder.find_spec("psycopg", sys.path):
        return
    if not _is_bare():
        raise EnvSetupError(
            "This list is in a database, and the package psycopg is missing.",
            f"Install it: {adding('postgres')}",
        )
    sys.path.append(str(_fetched(environ, _OF_POSTGRES) / private_env.PACKAGES))


def _fetched(
    environ: Mapping[str, str], requirements: Path, launcher: str = data_home.LAUNCHER, *, once: bool = False
) -> Path:
    """Return the environment with the packages of `requirements`; make it if need be.

    `once`: do not ask the registry again for an hour if that fails. Raises EnvSetupError.
    """
    data = private_env.data_directory(environ)
    wanted = private_env.recipe(requirements)
    env = private_env.environment(data, wanted)
    if not (data_home.is_safe(str(data)) and private_env.is_ready(env, wanted)):
        # Imported here: it costs every run tens of milliseconds that only the first one needs.
        from harness_lib.system.install import build  # noqa: PLC0415

        make = build.try_once if once else build.make
        make(data, env, launcher, wanted)
    return env


def _is_bare() -> bool:
    """Return whether this is a checkout or a skill folder, whose packages the launcher fetches."""
    return (_HOME / "bin" / "hs").is_file()


def beside(name: str) -> str | None:
    """Return the path of the launcher `name`, of this checkout or installed with this package; else None."""
    for place in (_HOME / "bin", Path(sys.executable).parent):
        if os.access(place / name, os.X_OK):
            return str(place / name)
    return None


def has_packages(environ: Mapping[str, str]) -> bool:
    """Return whether the packages of `hs` are in the data directory or installed with this package."""
    if not _is_bare():
        return True
    data, wanted = private_env.data_directory(environ), private_env.recipe(_OF_HS)
    return private_env.is_ready(private_env.environment(data, wanted), wanted)


def enter(environ: Mapping[str, str], launcher: str, requirements: Path = private_env.REQUIREMENTS) -> None:
    """Put the private packages on `sys.path` and byte code into its cache; make the environment if need be.

    `launcher` is the path of the program, to be named in a hint; `requirements` is the file of its pins.
    Talks on stderr only, and only while making.
    Raises EnvSetupError, and then nothing is left that looks ready.
    """
    env = _fetched(environ, requirements, launcher)
    sys.path.append(str(env / private_env.PACKAGES))
    sys.pycache_prefix = str(env.parent / data_home.BYTE_CODE)
    sys.dont_write_bytecode = False
