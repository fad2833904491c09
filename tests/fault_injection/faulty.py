"""One harness command in a process of its own, on a machine whose disk is full, or whose user is another."""

from __future__ import annotations

import os
import sys

from tests import another_user, forked
from tests.conftest import CHECKOUT
from tests.run_to_end import Said, run_to_end
from tests.verbs.project import Agent

# Every opening for writing whose path matches fails, from the `after`-th on; keyed to the path, never to a
# count of all calls. Children (git, checks) are real and not touched.
FAULT = """
import errno, os, re, sys
number, pattern, after = getattr(errno, sys.argv[1]), re.compile(sys.argv[2]), int(sys.argv[3])
seen = 0
def fail(event, args):
    global seen
    if event == "open" and isinstance(args[0], (str, bytes)) and args[2] & (os.O_WRONLY | os.O_RDWR):
        path = os.path.realpath(os.fsdecode(args[0]))
        if pattern.search(path):
            seen += 1
            if seen >= after:
                raise OSError(number, os.strerror(number), path)
sys.addaudithook(fail)
from harness_lib.cli.main import main
sys.exit(main(sys.argv[4:]))
"""


def with_fault(agent: Agent, number: str, pattern: str, *argv: str, after: int = 1) -> Said:
    """Type `harness ARGV` where opening what matches `pattern` for writing fails with errno `number`."""
    return forked_as(agent, FAULT, number, pattern, str(after), *argv)


def as_nobody(agent: Agent, *argv: str, **env: str) -> Said:
    """Type `harness ARGV` as the user nobody; the agent has typed that verb before, which imports it all."""

    def ask() -> list[int | str]:
        os.chdir("/")
        said = agent(*argv, **env)
        return [said.code, said.out, said.err]

    return Said(*another_user.told(ask))


def in_python(agent: Agent, code: str) -> Said:
    """Run `code` as that agent, in an interpreter of its own."""
    done = run_to_end([sys.executable, "-c", code], cwd=agent.cwd, env=_environment(agent))
    return Said(done.returncode, done.stdout, done.stderr)


def forked_as(agent: Agent, program: str, *argv: str) -> Said:
    """Run the Python code `program` as that agent, in a fork."""
    done = forked.run_hs(argv, program=program, cwd=agent.cwd, env=_environment(agent))
    return Said(done.returncode, done.stdout, done.stderr)


def _environment(agent: Agent) -> dict[str, str]:
    identity = {"HARNESS_WORKER_ID": agent.name, "CLAUDE_PID": str(agent.process.pid)}
    return {**os.environ, "PYTHONPATH": str(CHECKOUT), **identity}
