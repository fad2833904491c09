"""The gate: what an attempt must leave as it was at the claim, or its check proves nothing.

Source: docs/design.md, "The gate".
"""

from __future__ import annotations

from harness_lib import sha256
from harness_lib.task import Gate, Validation


def command_hash(validation: Validation) -> str:
    """Return `sha256:…` of the check's command and working directory."""
    return _hash(validation.command, validation.cwd)


def changed(gate: Gate | None, validation: Validation, protected_now: str | None) -> tuple[str, ...]:
    """Return the names of what differs from the gate: fields of the task, and `protected` for those files.

    `protected_now` is the git tree of the protected files as they are now.
    A claim without a gate (made by the prose) recorded nothing that could differ.
    """
    if gate is None:
        return ()
    differs = {
        # With the working directory of the claim: a change of that one is named by itself.
        "validation.command": gate.command not in (None, _hash(validation.command, gate.cwd)),
        "validation.cwd": gate.command is not None and gate.cwd != validation.cwd,
        "protected": gate.protected is not None and gate.protected != protected_now,
    }
    return tuple(name for name, differing in differs.items() if differing)


def _hash(command: str | None, cwd: str | None) -> str:
    # A NUL can stand in neither. A lone surrogate, which JSON can carry, has no UTF-8 of its own.
    text = f"{command or ''}\0{cwd or ''}"
    return "sha256:" + sha256.digest(text.encode("utf-8", "surrogatepass"))
