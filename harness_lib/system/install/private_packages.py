"""Run with the private packages: on the path of this process, made first if need be.

Standard library only.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from harness_lib.system.install import private_env


def enter(environ: Mapping[str, str], launcher: str, requirements: Path = private_env.REQUIREMENTS) -> None:
    """Put the private packages on `sys.path` and byte code into its cache; make the environment if need be.

    `launcher` is the path of the program, to be named in a hint; `requirements` is the file of its pins.
    Talks on stderr only, and only while making.
    Raises EnvSetupError, and then nothing is left that looks ready.
    """
    data = private_env.data_directory(environ)
    env = private_env.environment(data, requirements)
    if not (private_env.is_safe(data) and private_env.is_ready(env, requirements)):
        # Imported here: it costs every run tens of milliseconds that only the first one needs.
        from harness_lib.system.install import build  # noqa: PLC0415

        build.make(data, env, launcher, requirements)
    sys.path.append(str(private_env.packages(env)))
    sys.pycache_prefix = str(private_env.byte_code(data))
    sys.dont_write_bytecode = False
