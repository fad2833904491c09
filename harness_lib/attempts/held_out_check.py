"""Run the held-out check of a task on a clean checkout; the agent learns only whether it passed.

Its files are in the checkout while it runs. Its output and result go to the data directory.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from harness_lib import timestamps, typed
from harness_lib.attempts import check
from harness_lib.checks.protocol import Checked, Worktree
from harness_lib.checks.shell import ShellCheck
from harness_lib.core import held_out, ownership, quoting
from harness_lib.core.context import Context
from harness_lib.errors import EnvSetupError
from harness_lib.rules import runners
from harness_lib.system.files import atomic, directories, printed
from harness_lib.task import Task
from harness_lib.text import some

FAILED = "A held-out check failed"
DID_NOT = "A held-out check did not"
NAMED = 10

Checkout = Callable[[str], AbstractContextManager[Context]]


def run(
    ctx: Context, task: Task, commit: str, checkout: Checkout, *, suffix: str, holder: Task | None = None
) -> Checked:
    """Return the result of the held-out check of `task` on `commit`.

    `holder` is the claimed task, if it is another one; `checkout` gives a clean checkout of a commit.
    Raises ConfigError (not on this machine), EnvSetupError (it cannot run here), LeaseLostError.
    """
    held_out.load(ctx, task)
    with checkout(commit) as clean:
        return check.while_held(
            ctx, holder or task, lambda on_tick, tick: run_in(clean, task, suffix, on_tick, tick)
        )


def run_in(
    clean: Context,
    task: Task,
    suffix: str,
    on_tick: Callable[[], bool] | None = None,
    tick: float = 60.0,
) -> Checked:
    """Run the held-out check of `task` in the clean checkout `clean`. Raises what `run` raises.

    `suffix` ends the name of its log.
    """
    material = held_out.load(clean, task)
    assert material is not None, f"BUG: {task.id} has no held-out check."
    assert task.validation.hidden is not None
    place = held_out.directory(clean, task.validation.hidden)
    log = place / f"{check.safe_name(task.id)}{suffix}.log"
    asked = task.validation
    clean.busy(f"running the held-out check of {task.id} …")
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="run-", dir=place)))
        try:
            for number, file in enumerate(material.files):
                stack.enter_context(_placed(clean.git.top, file, scratch / str(number)))
        except (FileExistsError, NotADirectoryError) as error:
            checked = Checked("TEST_FAIL", f"Its files cannot be put in place: {error}.", "", log)
        else:
            shell = ShellCheck(task.id, _command(material, scratch), asked.cwd, asked.timeout_seconds)
            marks = {ownership.CHECKED: task.id}
            checked = shell.run(Worktree(clean.git.top, clean.env, log, clean.clock, marks, on_tick, tick))
    at = timestamps.render(clean.clock.now())
    held_out.tell(clean, task, f"{at}, {log.stem}: {checked.message}", checked.excerpt(), log)
    return _told(clean, task, checked)


def _command(material: held_out.Material, scratch: Path) -> str:
    if material.script is None:
        return material.command
    script = scratch / material.script.path
    atomic.write(script, material.script.content, durable=False, mode=0o700)
    return typed.word(script)


@contextmanager
def _placed(top: Path, file: held_out.Placed, aside: Path) -> Iterator[None]:
    """Put `file` into the checkout at `top`, and restore what was there, kept in `aside`, afterwards.

    Raises FileExistsError or NotADirectoryError if something else is in the way.
    """
    target = top / file.path
    if not target.parent.resolve().is_relative_to(top.resolve()):
        raise NotADirectoryError(f"{target.parent} leads out of the checkout")
    target.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(target):
        target.rename(aside)
    try:
        atomic.write(target, file.content, durable=False, mode=file.mode)
        yield
    finally:
        if target.is_dir() and not target.is_symlink():
            directories.remove_tree(target)
        target.unlink(missing_ok=True)
        if os.path.lexists(aside):
            aside.rename(target)


def _told(ctx: Context, task: Task, checked: Checked) -> Checked:
    """Return what the agent may know of `checked`: the result without its output."""
    if checked.verdict == "ENV_SETUP":
        show = typed.harness("show", task.id)
        raise EnvSetupError(
            f"The held-out check of {task.id} cannot run here.", f"The user sees why, in a terminal: {show}"
        )
    nowhere = check.log_directory(ctx, task)
    if checked.passed:
        return Checked("pass", checked.message, "", nowhere, seconds=checked.seconds)
    if checked.verdict == "TIMEOUT":
        message = f"{DID_NOT} end within {task.validation.timeout_seconds} s."
        return Checked("TIMEOUT", message, "", nowhere, held_out=True)
    names = _names(checked) if task.validation.hidden_names else []
    message = f"{FAILED}: {some(names, NAMED)}." if names else f"{FAILED}."
    return Checked("TEST_FAIL", message, "", nowhere, held_out=True)


def _names(checked: Checked) -> list[str]:
    failed = runners.failures(printed.ends_of(checked.log))
    return [quoting.one_line(each.name, quoting.PATH_LENGTH) for each in failed]
