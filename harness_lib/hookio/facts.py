"""Read how the list stands: from the summary while nobody else has touched the list, else from it.

What is found out about a list of somebody else's is kept, so that it is decoded once.
Both give the same document, so both give the same answers.
Source: docs/design.md, "The summary" and "Reading is strict".
"""

from __future__ import annotations

import os

from harness_lib.hookio import verdict
from harness_lib.state import summary
from harness_lib.system.place import find_root

TYPE_CHECKING = False  # see entry.py
if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness_lib.state.filestore.load import Loaded
    from harness_lib.state.summary_shape import Summary

# Beyond it the schema takes longer than hosts wait for a hook, and a hook that is cancelled holds nobody.
CHECKED_BYTES = 1024 * 1024


def read(root: str, env: Mapping[str, str], *, thorough: bool) -> tuple[Summary | None, str]:
    """Return (summary, "") of the list at `root`, or (the last one we wrote, why the list cannot be read).

    `thorough`: check a list that somebody else has touched by its schema too, where that is possible.
    """
    place = os.path.join(root, find_root.PRIVATE_DIR, "summary.json")
    digest = summary.read_at(os.path.join(root, find_root.STATE_FILE), place)
    if digest is not None:
        return digest, ""
    digest, trouble = verdict.read(root, thorough=thorough) or _decoded(root, env, thorough=thorough)
    return (digest, "") if digest is not None else (summary.last(place), trouble)


def _decoded(root: str, env: Mapping[str, str], *, thorough: bool) -> tuple[Summary | None, str]:
    from pathlib import Path  # noqa: PLC0415 (all of this takes longer than the whole hook otherwise)

    from harness_lib.errors import HarnessError  # noqa: PLC0415
    from harness_lib.state.filestore import load  # noqa: PLC0415
    from harness_lib.system.clock import SYSTEM  # noqa: PLC0415
    from harness_lib.system.place.roots import Root  # noqa: PLC0415

    try:
        loaded = load.find(Root(Path(root)))
    except HarnessError as error:
        return None, error.message
    trouble = _broken_contract(loaded, env) if thorough else ""
    digest = None if trouble else summary.build(loaded.state, SYSTEM.now(), [])
    if loaded.stamp is not None and loaded.source is None:
        verdict.write(root, loaded.stamp, digest, trouble, thorough=thorough)
    return digest, trouble


def _broken_contract(loaded: Loaded, env: Mapping[str, str]) -> str:
    """Return what the schema says against a list that the codec has let pass; "" without jsonschema."""
    if loaded.document is None or len(loaded.data or b"") > CHECKED_BYTES or not _has_jsonschema(env):
        return ""
    from harness_lib.state import schema  # noqa: PLC0415

    return "; ".join(map(str, schema.problems(loaded.document)[:3]))


def _has_jsonschema(env: Mapping[str, str]) -> bool:
    import sys  # noqa: PLC0415
    from importlib.util import find_spec  # noqa: PLC0415

    from harness_lib.errors import EnvSetupError  # noqa: PLC0415
    from harness_lib.system.install import private_env  # noqa: PLC0415

    try:
        packages = private_env.find(env)
    except EnvSetupError:
        # Others could put code there.
        return False
    if packages is not None and os.fspath(packages) not in sys.path:
        sys.path.append(os.fspath(packages))
    return find_spec("jsonschema") is not None
