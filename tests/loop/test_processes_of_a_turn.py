"""What is not overridden costs no process: a turn starts its tool, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.loop.conftest import Serve, Wire
from tests.loop.environment import environment
from tests.loop.servers.script import say, use
from tests.loop.source_files import write

COUNTING = """
import sys
started = []
def watch(event, args):
    if event in {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "os.exec"}:
        started.append(str(args[0]))
sys.addaudithook(watch)
from harness_lib.hs.main import entry
code = entry()
print("started:", *started, file=sys.stderr)
sys.exit(code)
"""


def started(project: Path, env: dict[str, str]) -> list[str]:
    """Return the programs that the process of a task has started."""
    done = subprocess.run(
        [sys.executable, "-c", COUNTING, "RUN it"],
        cwd=project, env=environment(env), stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
        timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout == "Done.\n", done.stderr
    return done.stderr.splitlines()[-1].removeprefix("started:").split()


def test_nothing_but_the_command_is_started(serve: Serve, wire: Wire, project: Path, home: Path) -> None:
    write(home / ".harness/skills/cook/SKILL.md", "---\nname: cook\ndescription: Cooks\n---\nBoil.\n")
    write(project / "f", "text\n")
    server = serve(wire, use("read_file", path="f"), use("bash", command="echo hi"), say("Done."))

    assert started(project, wire.environment(server)) == ["bash"]


def test_of_an_overridden_hook_there_is_one_process_each_time(
    serve: Serve, wire: Wire, project: Path, home: Path
) -> None:
    hook = write(home / ".harness/hooks.d/receive/05-look", "#!/bin/sh\ncat\n", 0o755)
    server = serve(wire, use("bash", command="echo hi"), say("Done."))

    assert started(project, wire.environment(server)) == [str(hook), "bash", str(hook)]
