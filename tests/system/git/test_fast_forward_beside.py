"""The user uses git at any point of a move: at the end both are whole, whether the move goes on or is killed.

Their command comes before an effect, in a process of its own, as it would from another terminal: before every
twelfth one here, each of the four cases beginning at another, and before each in turn in a release.
"""

from __future__ import annotations

import os
import shutil
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness_lib.system.git import advance, locks
from harness_lib.system.git.advance import HeadMovedError
from harness_lib.system.git.repository import Git
from tests.crash.effects import Place, of_event
from tests.system.git.gitrepo import World, commit_ahead, put, sh

DIED = 73
MOST = 300
# The effects between what changes the index and what moves HEAD.
LATER = 5


def _commits(top: Path) -> None:
    put(top / "mine", "the user's\n")
    sh(top, "add", "mine")
    sh(top, "commit", "-q", "-m", "The user's", "--", "mine")


def _stages(top: Path) -> None:
    """Stage a part of what they have written, as `git add -p` does."""
    put(top / "mine", "staged\n")
    sh(top, "add", "mine")
    put(top / "mine", "staged\nand not\n")


def _committed_it_is(top: Path) -> None:
    assert sh(top, "status", "--porcelain") == ""
    assert sh(top, "show", "main:mine") == "the user's"


def _staged_it_is(top: Path) -> None:
    assert sh(top, "status", "--porcelain") == "AM mine"
    assert sh(top, "show", ":mine") == "staged"
    assert (top / "mine").read_text() == "staged\nand not\n"


@dataclass(frozen=True)
class Deed:
    """What the user does, and what must be so when the move is over."""

    does: Callable[[Path], None]
    then: Callable[[Path], None]


DEEDS = {"commits": Deed(_commits, _committed_it_is), "stages": Deed(_stages, _staged_it_is)}


def _move(top: Path, base: str, ahead: str, number: int, deed: Deed, *, dies: int | None) -> bool:
    """Move in a child, and let `deed` be done before its effect `number`; return whether it came so far.

    `dies`: so many effects later, or never.
    """
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            code = _child(top, base, ahead, number, deed, dies)
        except BaseException:  # noqa: BLE001 - a fork must never return into the test
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code in (0, 1, DIED), code
    return code != 1


def _child(top: Path, base: str, ahead: str, number: int, deed: Deed, dies: int | None) -> int:
    place, git = Place(top), Git.open(top)
    count, busy = 0, False

    def before_each(event: str, args: tuple[object, ...]) -> None:
        nonlocal count, busy
        if busy or of_event(place, event, args) is None:
            return
        count += 1
        if count == number:
            busy = True
            deed.does(top)
            busy = False
        if dies is not None and count == number + dies:
            os._exit(DIED)

    with locks.hold(git):
        assert not advance.obstacles(git, base, ahead)
        sys.addaudithook(before_each)
        with suppress(HeadMovedError):
            advance.forward(git, base, ahead)
        busy = True
    return int(count < number)


CASES = [(deed, dies) for deed in DEEDS for dies in (None, LATER)]


@pytest.mark.parametrize(
    ("case", "first", "step"),
    [
        *((case, 3 * number + 1, 12) for number, case in enumerate(CASES)),
        *(pytest.param(case, 1, 1, marks=pytest.mark.release) for case in CASES),
    ],
)
@pytest.mark.timeout(300)
def test_whatever_the_user_does_at_any_point_of_it_is_as_they_did_it(
    tmp_path: Path, case: tuple[str, int | None], first: int, step: int
) -> None:
    deed, dies = case
    template = World.make(tmp_path / "template")
    ahead = commit_ahead(template)
    broken = []
    for number in range(first, MOST, step):
        top = tmp_path / "project"
        shutil.rmtree(top, ignore_errors=True)
        shutil.copytree(template.top, top)
        if not _move(top, template.base, ahead, number, DEEDS[deed], dies=dies):
            break
        try:
            _is_whole(top, template.base, ahead)
            DEEDS[deed].then(top)
        except AssertionError:
            broken.append(f"before effect {number}:\n{traceback.format_exc(limit=-2)}")
    else:
        raise AssertionError("it goes on for ever")
    assert number > 10
    assert not broken, f"{len(broken)} of {number} broke something:\n\n" + "\n".join(broken)


def _is_whole(top: Path, base: str, ahead: str) -> None:
    """Let the next one of us come, and find no half of a move."""
    git = Git.open(top)
    with locks.hold(git):
        advance.take_back(git)
    assert not advance.is_half_done(git)
    moved = git.is_ancestor(ahead, "HEAD")
    assert git.is_ancestor(base, "HEAD")
    assert (top / "new/file").exists() == moved
    assert (top / "dir/inner.txt").exists() != moved
    assert (top / "tracked.txt").read_text() == ("changed\n" if moved else "one\n")
