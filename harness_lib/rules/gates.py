"""Compare the gate of an attempt: the guarded inputs of its check, as they were at the claim.

Source: docs/design.md, "The gate".
"""

from __future__ import annotations

from harness_lib import sha256
from harness_lib.task import Gate


def changed(
    gate: Gate | None, fingerprint: str, cwd: str | None, protected_now: str | None
) -> tuple[str, ...]:
    """Return the names of what differs from the gate: fields of the task, and `protected` for files.

    `fingerprint` is the one of the present check in the working directory of the claim: a change of that
    directory to `cwd` is named by itself.
    `protected_now` is the git tree of the protected files as they are now.
    A claim without a gate (of the legacy protocol) recorded nothing that could differ.
    """
    if gate is None:
        return ()
    differs = {
        "validation.command": gate.command not in (None, fingerprint),
        "validation.cwd": gate.command is not None and gate.cwd != cwd,
        "protected": gate.protected is not None and gate.protected != protected_now,
    }
    return tuple(name for name, differing in differs.items() if differing)


def command_hash(command: str | None, cwd: str | None) -> str:
    """Return `sha256:…` of a command and its working directory."""
    # Neither may contain NUL. A lone surrogate, which JSON can carry, has no UTF-8 of its own.
    text = f"{command or ''}\0{cwd or ''}"
    return "sha256:" + sha256.digest(text.encode("utf-8", "surrogatepass"))
