"""A signal is handled at once, also one that comes when its process has just begun to wait."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

# A signal that another thread gets is as one that comes right before the call: it is noted, and the call of
# the main thread waits on. That thread runs only when the main one has let go of the interpreter: there.
PROGRAM = """
import os, select, signal, socket, sys, threading, time
from harness_lib.loop import processes, signals
from harness_lib.loop.failures import Interrupted

number, call = int(sys.argv[1]), sys.argv[2]
one, other = socket.socketpair()
waits = {
    "sleep": lambda: time.sleep(100),
    "receive": lambda: one.recv(1),
    "select": lambda: select.select([one], [], [], 100),
    "lock": lambda: threading.Event().wait(100),
}[call]
signals.handle(number, processes.interrupt)
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
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda each: each.name)
def test_a_signal_that_comes_when_the_wait_has_just_begun_ends_it_once(number: int, call: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(int(number)), call],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )

    assert (run.stdout, run.stderr) == ("interrupted 0\n", "")


def test_a_signal_that_is_handled_as_its_time_runs_out_is_not_sent_again() -> None:
    program = """
import os, signal, threading, time
from harness_lib.loop import signals

class Slow(threading.Event):
    def wait(self, timeout=None):
        super().wait()
        return False

seen = []
signals.handle(signal.SIGINT, lambda number, frame: seen.append(number))
signals._redelivery._handled = Slow()
os.kill(os.getpid(), signal.SIGINT)
time.sleep(3 * signals.AGAIN_SECONDS)
print(len(seen), flush=True)
os._exit(0)
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", timeout=60, check=False
    )

    assert (run.stdout, run.stderr) == ("1\n", "")


def test_a_signal_is_handled_once_for_each_time_it_comes() -> None:
    program = """
import os, signal, time
from harness_lib.loop import signals

seen = []
signals.handle(signal.SIGINT, lambda number, frame: seen.append(number))
for _ in range(3):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(3 * signals.AGAIN_SECONDS)
print(len(seen))
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", timeout=60, check=False
    )

    assert (run.stdout, run.stderr) == ("3\n", "")
