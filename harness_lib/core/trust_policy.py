"""Refuse to run the commands of a list that came with a clone, until a person trusts them."""

from __future__ import annotations

from harness_lib.core.context import Context
from harness_lib.errors import EnvSetupError, RefusedError
from harness_lib.state import trust
from harness_lib.state.api import Questions
from harness_lib.system.processes import owner

_HINT = "See them: harness check. If you trust them, type: harness trust"
_AGENTS_HINT = "Ask the user to look at them and, if they are theirs, to type in a terminal: harness trust"


def _init_script(ctx: Context) -> bytes | None:
    script = ctx.root.init_script
    return script.read_bytes() if script.is_file() else None


def prepare(ctx: Context) -> None:
    """Ask git now what `is_trusted` will want to know: no git runs while the list is locked."""
    _ = ctx.git, ctx.list_is_tracked


def is_trusted(ctx: Context, questions: Questions) -> bool:
    """Return whether this person has taken the list's commands for their own."""
    return trust.trusted(
        ctx.git.common_dir,
        ctx.root.path,
        fingerprint(ctx, questions),
        is_tracked=lambda: ctx.list_is_tracked,
    )


def fingerprint(ctx: Context, questions: Questions) -> str:
    """Return the fingerprint of everything that this list would run, its init script included."""
    return trust.fingerprint(questions.commands(), _init_script(ctx))


def note(ctx: Context, questions: Questions) -> None:
    """Remember that this list, with the commands it has now, is this person's."""
    trust.note(ctx.git.common_dir, ctx.root.path, questions.commands(), _init_script(ctx))


def require(ctx: Context, questions: Questions) -> None:
    """Raise RefusedError unless the list's commands may run."""
    if not is_trusted(ctx, questions):
        raise RefusedError(
            f"{_untrusted(ctx, questions)} on this machine, so nothing of this list runs.",
            _AGENTS_HINT if owner.in_agent(ctx.env) else _HINT,
        )


def doubt(ctx: Context) -> str | None:
    """Return why nothing of this list will run and who can change that; None if this person has trusted it.

    It is asked at each step, so it does not look whether a pull has changed commands since: `require` does.
    """
    try:
        if trust.is_noted(ctx.git.common_dir, ctx.root.path):
            return None
    except EnvSetupError:
        # No repository any more: what asks for one says so.
        return None
    hint = _AGENTS_HINT if owner.in_agent(ctx.env) else _HINT
    return (
        f"The commands in {ctx.store.list_file} have not been trusted on this machine, so harness finish "
        f"will be refused. {hint}"
    )


def _untrusted(ctx: Context, questions: Questions) -> str:
    """Return what of the list is not trusted, as far as the note of this person tells."""
    script = ctx.root.init_script
    new = trust.changed(ctx.git.common_dir, ctx.root.path, questions.commands(), _init_script(ctx))
    if new == {"init_script"}:
        change = "is new or has changed" if script.is_file() else "is gone"
        return f"The script {script} {change} since this list was trusted"
    also = f" and the script {script}" if script.is_file() and (not new or "init_script" in new) else ""
    if new:
        return f"Commands in {ctx.store.list_file}{also} are new or have changed since this list was trusted"
    return f"The commands in {ctx.store.list_file}{also} have not been trusted"


def runs_nothing(ctx: Context, questions: Questions) -> bool:
    """Return whether there is nothing yet that a clone could have brought to be run."""
    return _init_script(ctx) is None and not any(task.check or task.cleanup for task in questions.commands())
