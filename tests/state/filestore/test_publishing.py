"""The disk fills, or the process dies, before any effect of a change: the list is the old or the new one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness_lib.state.store import Store
from harness_lib.system.place.roots import Root

REPOSITORY = Path(__file__).parents[3]


# Each turn forks a child that makes one change while its n-th effect on the file system fails; the last turn
# is the first that meets no failure. An audit hook sees every effect, whoever causes it, and stays for ever:
# hence the child.
SCRIPT = """
import errno, json, os, sys
from pathlib import Path
from harness_lib.errors import EnvSetupError
from harness_lib.state import schema
from harness_lib.state.store import Store
from harness_lib.system.place.roots import Root

way, root = sys.argv[1], Root(Path(sys.argv[2]))
schema.problems({"tasks": []})  # imported and read before the disk fills
# A directory is opened to sync it.
WRITING = os.O_WRONLY | os.O_RDWR | os.O_DIRECTORY

def child(turn):
    left = turn
    def hook(event, args):
        nonlocal left
        ours = bool(args) and str(args[0]).startswith(str(root.path))
        effect = event in ("os.rename", "os.remove") or (event == "open" and (args[2] or 0) & WRITING)
        effect = effect or (event == "os.mkdir" and not os.path.isdir(args[0]))
        if not ours or not effect:
            return
        left -= 1
        if left == 0 and way == "die":
            os._exit(9)
        if left == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    sys.addaudithook(hook)
    code = 0
    try:
        with Store(root).transaction() as tx:
            task = tx.state.tasks[0]
            tx.replace(task._replace(attempts=task.attempts + 1))
            tx.log("WARN", "said", 1)
        code = 1 if tx.warnings else 0
    except EnvSetupError:
        os._exit(7)
    os._exit(code if left <= 0 else 100)

def attempts():
    return json.loads(root.state.read_bytes())["tasks"][0]["attempts"]

results = []
while not results or results[-1][0] != 100:
    before = attempts()
    pid = os.fork()
    if pid == 0:
        child(len(results) + 1)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    results.append((code, attempts() - before))
print(json.dumps(results))
"""


def outcomes(way: str, root: Root) -> list[tuple[int, int]]:
    """Return (exit code, 1 if the change was made else 0) for a failure of each effect in turn."""
    command = [sys.executable, "-c", SCRIPT, way, str(root.path)]
    done = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True)
    return [(code, made) for code, made in json.loads(done.stdout)]


def test_a_disk_that_fills_anywhere_is_an_error_before_and_a_warning_after(store: Store, root: Root) -> None:
    results = outcomes("full", root)

    assert results[-1] == (100, 1)
    assert set(results[:-1]) == {(7, 0), (1, 1)}
    # First what is refused, then what is only warned about: publishing is one step.
    assert results[:-1] == sorted(results[:-1], reverse=True)
    assert store.ask().warnings == ()
    assert [path.name for path in root.path.rglob("*.tmp")] == []


def test_a_process_that_dies_anywhere_leaves_the_old_list_or_the_new_one(store: Store, root: Root) -> None:
    results = outcomes("die", root)

    assert results[-1] == (100, 1)
    assert {made for _, made in results} == {0, 1}
    assert {code for code, _ in results[:-1]} == {9}
    with store.transaction() as tx:
        assert tx.warnings == []


@pytest.mark.parametrize("bits", [0o600, 0o640])
def test_a_private_list_keeps_a_private_backup(store: Store, root: Root, bits: int) -> None:
    root.state.chmod(bits)

    with store.transaction() as tx:
        tx.state = tx.state.__class__(tasks=tx.state.tasks)

    assert [path.stat().st_mode & 0o777 for path in (root.state, root.backup)] == [bits, bits]
