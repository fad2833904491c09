"""`harness doctor`: look for common problems and name their cures. Never writes and takes no lock."""

from __future__ import annotations

from argparse import Namespace

from harness_lib import errors
from harness_lib.core import quoting
from harness_lib.core.context import Context, Reply
from harness_lib.doctor import Diagnoses, Examination, bad, has_root, machine, project
from harness_lib.state.api import Oddity

SUMMARY = "find common problems, and say how to fix each"
EXAMPLE = "harness doctor"
HELP_ORDER = 410
LENGTH = 300

MACHINE: tuple[Examination, ...] = (
    machine.python,
    machine.worker,
    machine.git,
    machine.environment,
    machine.repository,
    machine.ignored,
    machine.root,
    project.worktree,
    machine.sandbox,
    machine.python_of_hooks,
    project.loaded,
    machine.hs,
)
# Only in a project with a list.
LIST: tuple[Examination, ...] = (project.task_list, project.files, project.store)


def answer(ctx: Context, _args: Namespace) -> Reply:
    """Return a summary and one line per finding; exit 1 if one is bad."""
    diagnoses = [each for examination in MACHINE for each in _examined(examination, ctx)]
    if has_root(ctx):
        diagnoses += [each for examination in LIST for each in _examined(examination, ctx)]
    # Several of them may meet the same.
    diagnoses = list(dict.fromkeys(diagnoses))
    failed, odd = (sum(each.level == level for each in diagnoses) for level in ("bad", "warn"))
    verdict = f"{failed} bad, {odd} to look at" if failed or odd else "all is well"
    then = "harness status" if has_root(ctx) else "harness init"
    return Reply(
        "\n".join([verdict, *map(_line, diagnoses)]),
        exit=errors.Exit.CHECK_FAILED if failed else errors.Exit.DONE,
        next="harness doctor" if failed else then,
        extra={"found": [each._asdict() for each in diagnoses]},
    )


def _line(found: Oddity) -> str:
    """Return `level  what -> cure`."""
    text = f"{found.level:<4}  {quoting.one_line(found.what, LENGTH)}"
    return f"{text} -> {quoting.one_line(found.cure, LENGTH)}" if found.cure else text


def _examined(examination: Examination, ctx: Context) -> Diagnoses:
    """Yield what is found; a file that may not be looked at is a finding, too."""
    try:
        yield from examination(ctx)
    except OSError as error:
        yield bad(errors.describe(error), errors.cure(error))
