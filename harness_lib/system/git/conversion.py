"""The settings of git that give a file other content in a commit than it has on disk: filters, line ends."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from harness_lib.system.git.calls import decode
from harness_lib.system.git.raw_files import quoted
from harness_lib.system.git.repository import Git

_KEYS = r"^(filter\..*\.(clean|process|required)|core\.(autocrlf|eol))$"
_DEFAULTS = {"core.autocrlf": "false", "core.eol": "native"}


def settings(git: Git) -> dict[str, str]:
    """Return key → value of these settings, as git has them from all its files; the last value counts."""
    records = decode(git.run("config", "-z", "--get-regexp", _KEYS, check=False).stdout)
    pairs = (record.partition("\n") for record in records)
    # A key that stands alone is a switch that is on.
    return {key: value if line_end else "true" for key, line_end, value in pairs}


def changed(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """Return the settings that differ."""
    return sorted(key for key in {*old, *new} if old.get(key) != new.get(key))


def hashed(
    git: Git, paths: Sequence[str], wanted: Mapping[str, str], differing: Sequence[str]
) -> dict[str, str]:
    """Return path → blob of the files at `paths` as git would commit them under the settings `wanted`.

    `differing`: those that are other ones now; none has a "=" in its name, which no command line can give to
    git. The blobs are kept.
    """
    words = []
    for key in differing:
        default = _DEFAULTS.get(key, "false" if key.endswith(".required") else "")
        words += ["-c", f"{key}={wanted.get(key, default)}"]
    # Relative to the top: by its path git knows what is to be done with a file.
    listing = b"".join(quoted(path) + b"\n" for path in paths)
    result = git.run(*words, "hash-object", "-w", "--stdin-paths", stdin=listing)
    return dict(zip(paths, os.fsdecode(result.stdout).split(), strict=True))
