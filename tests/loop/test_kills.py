"""Which processes a turn has, and what becomes of them: signals, `kill -9`, what is left running."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness_lib.loop import processes
from harness_lib.loop.processes import Interrupted
from harness_lib.system.processes import child, process
from tests.conftest import for_release
from tests.loop.conftest import CHAT, OF_EACH_MAKER, Done, Go, Hs, Serve, Started, Wire, session_of
from tests.loop.servers.script import Json, ModelServer, Step, Use, bash, say, use
from tests.loop.source_files import at_home, write, write_script, write_tool
from tests.run_to_end import Said, run_to_end

DYING = """
import os, signal, sys
last, seen = int(sys.argv.pop(1)), 0
def effect(event, args):
    if event == "open":
        return bool((args[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
    return event in {
        "os.rename", "os.remove", "os.mkdir", "os.truncate", "subprocess.Popen", "socket.connect",
    }
def watch(event, args):
    global seen
    if effect(event, args) and not str(args[0]).endswith(".pyc") and "__pycache__" not in str(args[0]):
        seen += 1
        if seen == last:
            os.kill(os.getpid(), signal.SIGKILL)
from harness_lib.hs.main import entry
sys.addaudithook(watch)
sys.exit(entry())
"""
LEAST = 20
STRIDE = 1 if os.environ.get("CRASH_EVERYWHERE") else 5
CALLS = (Use("bash", {"command": "echo one"}), Use("write_file", {"path": "made", "content": "x"}))


class Answering(ModelServer):
    """Answers by what was said last, so that it does not matter how often somebody has died before."""

    def next_step(self, body: Json, headers: dict[str, str]) -> Step:
        super().next_step(body, headers)
        said = str((body.get("messages") or body["input"])[-1])
        called = any(word in said for word in ("tool_result", "'tool'", "function_call_output"))
        return say("Done.") if called else Step(text="I look.", thinking="hm", uses=CALLS)


@pytest.fixture
def server(wire: Wire) -> Iterator[Answering]:
    """Return a host on each of the wires."""
    with Answering(wire.handler, [say("")]) as server:
        yield server


@pytest.mark.timeout(600)
@pytest.mark.parametrize("wire", OF_EACH_MAKER, ids=lambda wire: wire.name)
def test_a_turn_that_is_killed_anywhere_goes_on(hs: Hs, wire: Wire, server: Answering) -> None:
    env = wire.environment(server) | {"HARNESS_PROVIDER": wire.provider}
    store = at_home("sessions")
    seen: set[Path] = set()

    last = 1
    # It dies before its effect of this number.
    while hs(str(last), "RUN it", env=env, program=DYING).code == -signal.SIGKILL:
        new = set(store.iterdir()) - seen if store.is_dir() else set()
        for session in new:
            messages_are_whole(session)
            answer = hs(session.name, "go on", env=env)
            assert (answer.code, answer.out) == (0, "Done.\n"), f"{last}: {answer.err}"
            messages_are_whole(session)
        seen |= new
        last += STRIDE

    assert last > LEAST
    assert set(hs("session", "list").out.split()) == {path.name for path in store.iterdir()}
    assert all(hs("session", "show", path.name).code == 0 for path in list(seen)[:2])


def messages_are_whole(session: Path) -> None:
    """Fail on a message that is half written."""
    for path in (session / "messages").glob("[0-9]*"):
        text = path.read_text()
        assert text.startswith("---\nrole: "), path
        assert text.count("---\n") > 1, path
        assert text.endswith("\n"), path
    for path in (session / "native").glob("[0-9]*.json"):
        json.loads(path.read_text())


# Says who it is where the test reads it, and stays; of what it has started, too.
STAYS = "echo $$ > pids; (setsid sh -c 'echo $$ > pids; exec sleep 600') & sleep 600"


def killed_in(project: Path, started: Started) -> list[int]:
    """Kill a task while its tool is at work; return descriptors of the two processes that it leaves.

    The tool may be quicker than the note of it: what is killed before that is known to nobody.
    """
    sessions = Path(os.environ["HOME"], ".harness", "sessions")
    os.mkfifo(project / "pids")
    # Our own end keeps it open, so that no line is missed between two writers.
    lines = os.fdopen(os.open(project / "pids", os.O_RDWR), encoding="ascii")
    with lines, started("RUN it", stderr=subprocess.DEVNULL) as run:
        pids = [lines.readline().strip() for _ in range(2)]
        left = [os.pidfd_open(int(pid)) for pid in pids]
        while not any(note.read_text().split()[0] in pids for note in sessions.rglob("*.running")):
            time.sleep(0.01)
        run.send_signal(signal.SIGKILL)
    return left


def has_ended(descriptor: int, seconds: float = 60) -> bool:
    """Return whether that process ends."""
    return bool(select.select([descriptor], [], [], seconds)[0])


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="processes are watched by descriptors")
@pytest.mark.parametrize("tool", ["bash", "stay", "agent"])
def test_it_is_ended_when_the_session_goes_on(
    hs: Hs, started: Started, serve: Serve, project: Path, tool: str
) -> None:
    write_tool("stay", STAYS)
    arguments = {"bash": {"command": f"trap '' TERM; {STAYS}"}, "stay": {}, "agent": {"prompt": "stay"}}[tool]
    inside = [use("stay")] if tool == "agent" else []
    serve(CHAT, Step(uses=(Use(tool, arguments),)), *inside, say("Where were we?"))
    left = killed_in(project, started)
    assert not any(has_ended(each, 0) for each in left)

    answer = hs("--continue", "go on")

    assert (answer.code, answer.out) == (0, "Where were we?\n"), answer.err
    assert all(has_ended(each) for each in left)
    assert "left running was ended" in answer.err


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="processes are watched by descriptors")
def test_it_is_ended_when_the_session_is_removed(
    hs: Hs, started: Started, serve: Serve, project: Path
) -> None:
    serve(CHAT, bash(STAYS))
    left = killed_in(project, started)

    assert hs("session", "rm", session_of().name).code == 0

    assert all(has_ended(each) for each in left)


def test_of_what_has_ended_nothing_is_noted(go: Go) -> None:
    # It may be faster than whoever notes it.
    looks = 'cd "$HARNESS_SESSION"; until [ -s *.running ]; do sleep 0.05; done; cat *.running'
    _, answer = go(bash(looks), say("Done."), words=("RUN it",))
    assert answer.code == 0

    session = session_of()
    noted = (session / "messages/0003-tool_result.md").read_text().splitlines()[-1]
    assert len(noted.split()) >= 3, "it was not noted while it ran"
    assert list(session.glob("*.running")) == []


COUNTING = """
import os, sys
started = []
def watch(event, args):
    if event in {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "os.exec"}:
        started.append(str(args[0]))
def leave(code, leave=os._exit):
    print("started:", *started, file=sys.stderr, flush=True)
    leave(code)
os._exit = leave
sys.addaudithook(watch)
from harness_lib.hs.main import entry
entry()
"""


def programs(said: Said) -> list[str]:
    """Return the programs that the process of a task has started."""
    return said.err.splitlines()[-1].removeprefix("started:").split()


def test_nothing_but_the_command_is_started(done: Done, wire: Wire, project: Path) -> None:
    write("skills/cook/SKILL.md", "---\nname: cook\ndescription: Cooks\n---\nBoil.\n")
    write(project / "f", "text\n")
    steps = (use("read_file", path="f"), bash("echo hi"), say("Done."))
    _, said = done(*steps, wire=wire, program=COUNTING)

    assert programs(said) == ["bash"]


def test_of_an_overridden_hook_there_is_one_process_each_time(done: Done, wire: Wire) -> None:
    hook = write_script("hooks.d/receive/05-look", "cat")
    _, said = done(bash("echo hi"), say("Done."), wire=wire, program=COUNTING)

    assert programs(said) == [str(hook), "bash", str(hook)]


# A signal that another thread gets is as one that comes right before the call: it is noted, and the call of
# the main thread waits on. That thread runs only when the main one has let go of the interpreter: there.
PROGRAM = """
import os, select, signal, socket, sys, threading, time
from harness_lib.loop import processes
from harness_lib.loop.processes import Interrupted
from harness_lib.system.processes import own_process

number, call = int(sys.argv[1]), sys.argv[2]
one, other = socket.socketpair()
waits = {
    "sleep": lambda: time.sleep(100),
    "receive": lambda: one.recv(1),
    "select": lambda: select.select([one], [], [], 100),
    "lock": lambda: threading.Event().wait(100),
}[call]
own_process.handle(number, processes.interrupt)
begin = threading.Event()

def send():
    begin.wait()
    signal.pthread_kill(threading.get_ident(), number)
    time.sleep(100)

threading.Thread(target=send, daemon=True).start()
time.sleep(0.1)
sys.setswitchinterval(1000)
again = 0
try:
    begin.set()
    waits()
except Interrupted:
    sys.setswitchinterval(0.005)
    try:
        time.sleep(1)
    except Interrupted:
        again = 1
    print("interrupted", again, flush=True)
    os._exit(0)
print("waited", flush=True)
"""


@pytest.mark.parametrize("call", ["sleep", "receive", "select", "lock"])
@pytest.mark.parametrize("number", [signal.SIGINT, *for_release(signal.SIGTERM)], ids=lambda each: each.name)
def test_a_signal_that_comes_when_the_wait_has_just_begun_ends_it_once(number: int, call: str) -> None:
    assert _printed(PROGRAM, str(int(number)), call) == "interrupted 0\n"


HANDLES = """
import os, signal, threading, time
from harness_lib.system.processes import own_process

class Slow(threading.Event):
    def wait(self, timeout=None):
        super().wait()
        return False

seen = []
own_process.handle(signal.SIGINT, lambda number, frame: seen.append(number))
SENDS
print(len(seen), flush=True)
os._exit(0)
"""
ONE = "os.kill(os.getpid(), signal.SIGINT); time.sleep(3 * own_process.AGAIN_SECONDS)"


@pytest.mark.parametrize(
    ("sends", "handled"),
    [(f"own_process._redelivery._handled = Slow(); {ONE}", 1), (f"for _ in range(3): {ONE}", 3)],
    ids=["handled as its time runs out", "sent three times"],
)
def test_a_signal_is_handled_once_for_each_time_it_comes(sends: str, handled: int) -> None:
    assert _printed(HANDLES.replace("SENDS", sends)) == f"{handled}\n"


def _printed(program: str, *argv: str) -> str:
    """Return what `program` prints, and nothing to stderr, in an interpreter of its own."""
    run = run_to_end([sys.executable, "-c", program, *argv])
    assert run.stderr == ""
    return run.stdout


def test_a_second_signal_that_comes_before_the_program_is_told_leaves_nothing_running(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted() -> Iterator[process.Process]:
        monkeypatch.undo()
        raise Interrupted

    sleeper = subprocess.Popen(["sleep", "20"], start_new_session=True)
    monkeypatch.setattr(process, "everybody", interrupted)

    with pytest.raises(Interrupted):
        child.end(sleeper)

    assert sleeper.returncode == -signal.SIGKILL


def test_of_a_program_that_dies_before_it_may_begin_nothing_is_left(tmp_path: Path) -> None:
    held: list[child.Child] = []

    def dead(begin: Callable[[], child.Child]) -> child.Child:
        held.append(begin())
        held[0].kill()
        os.waitid(os.P_PID, held[0].pid, os.WEXITED | os.WNOWAIT)
        return held[0]

    with pytest.raises(BrokenPipeError):
        processes.run(["true"], env=os.environ, cwd=tmp_path, merge=True, starter=dead)

    assert held[0].returncode == -signal.SIGKILL
    assert held[0].pid not in processes._running


def test_a_signal_that_was_held_back_is_raised_after_an_error_too_and_only_by_the_outermost_block() -> None:
    steps: list[str] = []

    @processes.uninterrupted()
    def fail() -> None:
        with processes.uninterrupted():
            processes.interrupt(signal.SIGINT, None)
        steps.append("not left in the middle")
        raise OSError

    with pytest.raises(Interrupted) as raised:
        fail()

    assert steps
    assert raised.value.args == (signal.SIGINT,)
    with processes.uninterrupted():
        pass
