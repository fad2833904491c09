"""Name what an attempt has left in a person's repository beside its commits; nothing of it is changed by us.

A hook path, a filter or an alias runs a program whenever the person types the next git command. Some are
meant: `npm install` sets `core.hooksPath` for husky. So each is named once, with what takes it out.
In a run an agent has a repository of its own, and leaves nothing here.
"""

from __future__ import annotations

import json
from pathlib import Path

from harness_lib import sha256, typed
from harness_lib.attempts import baseline
from harness_lib.core.context import Context
from harness_lib.rules import recovery
from harness_lib.system.files import atomic
from harness_lib.system.git import clones
from harness_lib.system.git.calls import decode
from harness_lib.system.git.repository import Git
from harness_lib.text import some

# What makes git run a program at a person's next command.
SETTINGS = r"^(filter\..*|alias\..*|core\.(hookspath|fsmonitor))$"
REFS = ("refs/heads", "refs/tags")
NAMED = 5


def note(ctx: Context) -> None:
    """Note what is there as an attempt begins in this work tree."""
    if not clones.has_clone(ctx.git):
        atomic.write(_file(ctx), json.dumps(_present(ctx.git)).encode(), durable=False, make=True)


def left(ctx: Context, task_id: str) -> list[str]:
    """Return a line that names what is new since, with the commands that take it out; no line for nothing."""
    try:
        before = json.loads(_file(ctx).read_bytes())
    except (OSError, ValueError):
        # Claimed by the prose, or by an older harness.
        return []
    new = [
        _words(ctx.git, kind, name, before[kind].get(name))
        for kind, present in _present(ctx.git).items()
        for name, value in present.items()
        if before[kind].get(name) != value
    ]
    return [f"{task_id} left in this repository, beside its commits: {some(new, NAMED)}"] if new else []


def _present(git: Git) -> dict[str, dict[str, str]]:
    """Return kind → name → value of what there is."""
    records = decode(git.run("config", "--local", "-z", "--get-regexp", SETTINGS, check=False).stdout)
    hooks = git.common_dir / "hooks"
    files = [path for path in hooks.iterdir() if path.suffix != ".sample"] if hooks.is_dir() else []
    return {
        "settings": {key: value for key, _, value in (record.partition("\n") for record in records)},
        "hooks": {path.name: sha256.digest(path.read_bytes()) for path in sorted(files) if path.is_file()},
        # That one moved is what work does.
        "refs": dict.fromkeys(
            (name for name, _ in git.refs(*REFS) if not name.startswith(recovery.WAITING)), ""
        ),
    }


def _words(git: Git, kind: str, name: str, old: str | None) -> str:
    if kind == "settings":
        undo = typed.git("config", name, old) if old is not None else typed.git("config", "--unset-all", name)
        return f"{name} ({undo})"
    if kind == "hooks":
        path = typed.word(git.common_dir / "hooks" / name)
        return f"the hook {name} (rm {path})" if old is None else f"another content of the hook {path}"
    what, short = "branch" if name.startswith(recovery.HEADS) else "tag", name.split("/", 2)[2]
    return f"the {what} {short} ({typed.git(what, '-d', short)})"


def _file(ctx: Context) -> Path:
    place = sha256.digest(str(ctx.git.top).encode("utf-8", "surrogateescape"))[:16]
    return ctx.root.private / baseline.DIRECTORY / f"side-effects-{place}.json"
