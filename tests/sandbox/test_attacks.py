"""Ways out of the sandbox that an agent tries, and for each engine those that stay open: docs/sandbox.md.

An attack is a shell command that succeeds if it gets what it wants.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from harness_lib.system.processes import engines
from tests.conftest import CHECKOUT
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put

WORD = "the-secret-word"
PYTHON = shlex.quote(sys.executable)
# Connects to the Unix socket of its argument, without a file if that begins with @.
CONNECT = """
import socket, sys
socket.socket(socket.AF_UNIX).connect(sys.argv[1].replace("@", chr(0)))
"""
# Attaches to the process of its argument.
ATTACH = """
import ctypes, sys
assert ctypes.CDLL(None).ptrace(16, int(sys.argv[1]), 0, 0) == 0
"""

# Each is tried on each path that may not be read, $P, and on each that may not be written.
READS = {
    "read": "grep -q WORD $P",
    "link": "ln -s $P link; grep -q WORD link",
    "link of a directory": "ln -s $(dirname $P) link; grep -q WORD link/$(basename $P)",
    "hard link": "ln $P hard && grep -q WORD hard",
    "copy": "cp -r $(dirname $P) copy; grep -q WORD copy/$(basename $P)",
    "rename out": "mv $P moved && grep -q WORD moved",
    "own root": "grep -q WORD /proc/self/root$P",
    "root of the first process": "grep -q WORD /proc/1/root$P",
    "root of the parent": "grep -q WORD /proc/$PPID/root$P",
    "root of a process outside": "grep -q WORD /proc/$OUTSIDE/root$P",
    "settings of git": "git config -f $P -l 2>&1 | grep -q WORD; git diff --no-index $P f | grep -q WORD",
}
WRITES = {
    "write": "echo x > $P",
    "append": "echo x >> $P",
    "write by link": "ln -s $P link; echo x > link",
    "rename to": "echo x > new; mv new $P",
    "hard link to": "echo x > new; ln new $P",
    "own root to write": "echo x > /proc/self/root$P",
    "root of the parent to write": "echo x > /proc/$PPID/root$P",
    "directory": "mkdir $P.d",
    "pipe": "mkfifo $P.p",
}
READ = (
    *("~/.ssh/id", "~/.aws/credentials", "~/.netrc", "~/.kube/config", "~/.mozilla/cookies"),
    "~/.config/gh/hosts.yml",
    *("$PROJECT/.env.production", "$PROJECT/private/deep/notes", "$(echo $HARNESS_HOME/hidden/*/check.json)"),
)
WRITTEN = (
    *("~/written", "~/.bashrc", "~/bin/tool", "$PROJECT/written", "$PROJECT/harness-tasks.json"),
    *("$PROJECT/.git/hooks/pre-commit", "$PROJECT/.git/objects/info/alternates", "$HARNESS_HOME/written"),
)
ATTACKS = {
    "directory of a process outside": "grep -q WORD /proc/$OUTSIDE/cwd/.ssh/id",
    "environment of a process outside": "grep -q WORD /proc/$OUTSIDE/environ",
    "memory of a process outside": "head -c 1 /proc/$OUTSIDE/mem",
    "environment of all processes": "cat /proc/[0-9]*/environ | grep -q WORD",
    "ptrace": f"{PYTHON} ~/attach.py $OUTSIDE",
    "signal": "kill -0 $OUTSIDE",
    "unmount": "umount ~/.ssh; grep -q WORD ~/.ssh/id",
    "unmount as another user": "unshare -Urm sh -c 'umount ~/.ssh; grep -q WORD ~/.ssh/id'",
    "mount": "mount -o remount,rw,bind /; unshare -Urm mount -o remount,rw,bind /",
    "chroot": "unshare -Ur chroot /proc/self/root grep -q WORD $HOME/.ssh/id",
    "more rights": "grep -q 'NoNewPrivs:.0' /proc/self/status",
    "setuid program": 'test "$(~/bin/setuid -u)" != "$(id -u)"',
    "capabilities": "unshare --mount true",
    "device": "mknod disk b 8 0",
    "kernel": "cat /proc/sys/kernel/core_pattern > p && cat p > /proc/sys/kernel/core_pattern",
    "inherited descriptors": "ls -l /proc/self/fd | grep -E ' ([3-9]|[0-9]{2,}) -> /' | grep -vq /proc/",
    "hard link of a program": "ln ~/bin/tool tool && echo x >> tool",
    "named pipe": "timeout 2 sh -c 'echo x > ~/pipe'",
    "core.fsmonitor": "git -C $PROJECT config core.fsmonitor ./written",
    "git -c core.fsmonitor": "git -C $PROJECT -c core.fsmonitor='touch ~/ran;:' status; test -e ~/ran",
    "password of a remote": "grep -q WORD $PROJECT/.git/config; git -C $PROJECT config -l | grep -q WORD",
    "other work trees": "ls $HARNESS_HOME/worktrees/*/*/0",
    "token": 'test -n "$GH_TOKEN"',
    "cloud key": 'test -n "$AWS_SECRET_ACCESS_KEY"',
    "socket of ssh-agent": 'test -n "$SSH_AUTH_SOCK"',
    "address of D-Bus": 'test -n "$DBUS_SESSION_BUS_ADDRESS"',
    "own settings of the sandbox": 'test -n "$HARNESS_IN_SANDBOX"',
    "cron": "echo x > /var/spool/cron/written || echo x > /var/spool/cron/crontabs/written",
    "at": "echo x > /var/spool/cron/atjobs/written || echo x > /var/spool/at/written",
    "service": "systemd-run --user true; systemd-run true",
    "socket of D-Bus": f"{PYTHON} ~/connect.py /run/dbus/system_bus_socket",
    "socket of Docker": f"{PYTHON} ~/connect.py ~/.docker/run/docker.sock",
    "socket of tmux": f"{PYTHON} ~/connect.py $TEMPORARY/socket",
    "socket of an editor": f"{PYTHON} ~/connect.py ~/.emacs.d/server",
    "socket without a file": f"{PYTHON} ~/connect.py @$ABSTRACT",
    "shared memory": "grep -q WORD $SHARED",
    "other temporary files": "grep -q WORD $TEMPORARY/file",
    "write temporary files": "echo x > $TEMPORARY/written",
}
# Settings of the agent's own repository, which git runs outside if harness lets it.
OWN = """
printf '#!/bin/sh\\ntouch %s/escaped\\ncat\\n' $HOME > evil; chmod +x evil
for name in core.fsmonitor core.sshCommand filter.x.clean filter.x.smudge diff.external
do git config $name $PWD/evil; done
mkdir -p hooks .git/hooks; git config core.hooksPath $PWD/hooks
for hook in pre-commit post-commit post-checkout reference-transaction post-index-change; do
cp evil hooks/$hook; cp evil .git/hooks/$hook; done
echo '* filter=x diff=x' > .git/info/attributes
"""
# What the page says that an engine leaves open, and what it closes on newer kernels only.
OPEN = {
    "bubblewrap": {"named pipe", "socket without a file"},
    "nono": {
        *("socket of Docker", "socket of tmux", "socket of an editor"),
        *("shared memory", "other temporary files"),
    },
}
# What nono leaves open where these programs run.
SOMETIMES = {"bubblewrap": set[str](), "nono": {"service", "socket of D-Bus"}}
NEWER = {"bubblewrap": set[str](), "nono": {"signal", "socket without a file"}}


@contextmanager
def listening(address: str) -> Iterator[None]:
    """Listen on a Unix socket, as a program outside does."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen(8)
        yield


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the attacks are those of Linux")
def test_an_agent_gets_out_only_where_the_page_says_so(
    each_engine: str, workshop: Workshop, home: Path
) -> None:
    for name in READ[:6]:
        put(home / name.removeprefix("~/"), WORD)
    put(home / "bin/tool", "#!/bin/sh\n", executable=True)
    setuid = Path(shutil.copy("/usr/bin/id", home / "bin/setuid"))
    if os.geteuid() == 0:
        os.chown(setuid, 65534, 65534)
    setuid.chmod(0o4755)
    put(home / ".emacs.d/none", "")
    put(home / ".docker/run/none", "")
    os.mkfifo(home / "pipe")
    for name in (".env.production", "private/deep/notes"):
        workshop.put(name, WORD)
    workshop.put(".git/info/exclude", "/.env.production\n/private\n/.harness\n/harness-*\n")
    workshop.sh("remote", "add", "origin", f"https://me:{WORD}@example.com/x.git")
    temporary = Path("/tmp") / f"harness-attack-{os.getpid()}-{each_engine}"
    shared = Path("/dev/shm") / temporary.name
    put(home / "connect.py", CONNECT)
    put(home / "attach.py", ATTACH)
    tries = "if ({}) > /dev/null 2>&1; then echo '{}'; fi"
    loops = {f"for P in {' '.join(READ)}; do": READS, f"for P in {' '.join(WRITTEN)}; do": WRITES}
    lines = [tries.format(command.replace("WORD", WORD), name) for name, command in ATTACKS.items()]
    for loop, ways in loops.items():
        clean = "rm -rf link hard copy moved new"
        tried = (tries.format(f"{clean}; {way.replace('WORD', WORD)}", name) for name, way in ways.items())
        lines += [loop, *tried, f"{clean}; done"]
    # What is no secret can be read.
    do = "sh sh ~/attacks.sh > seen; sh ~/own.sh; grep 'no secret' ~/.config/other.ini && touch made"
    task = workshop.add("Try", "test -f made", "--hidden", f"echo {WORD}", do=do)
    with ExitStack() as stack:
        temporary.mkdir()
        stack.callback(shutil.rmtree, temporary)
        # Without a reader nobody could open it.
        stack.callback(os.close, os.open(home / "pipe", os.O_RDWR))
        put(temporary / "file", WORD)
        put(shared, WORD)
        stack.callback(shared.unlink, missing_ok=True)
        stack.enter_context(listening(str(home / ".docker/run/docker.sock")))
        stack.enter_context(listening(str(temporary / "socket")))
        stack.enter_context(listening(str(home / ".emacs.d/server")))
        stack.enter_context(listening(f"\0{temporary.name}"))
        outside = stack.enter_context(
            subprocess.Popen(["cat"], stdin=subprocess.PIPE, cwd=home, env={"WORD": WORD})
        )
        env = {
            **dict.fromkeys(("GH_TOKEN", "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK"), WORD),
            "DBUS_SESSION_BUS_ADDRESS": WORD,
            "PROJECT": str(workshop.top),
            "OUTSIDE": str(outside.pid),
            "ABSTRACT": temporary.name,
        }
        # No variable that names a temporary file: the sandbox would show it.
        places = f"TEMPORARY={temporary}; SHARED={shared}\n"
        put(home / "attacks.sh", places + "\n".join(lines))
        put(home / "own.sh", OWN)
        workshop.ends(0, "--sandbox", each_engine, **env)
        outside.stdin.close()  # type: ignore[union-attr]
    assert workshop.statuses() == {task: "completed"}
    seen = set(workshop.sh("show", "main:seen").splitlines())
    assert seen - NEWER[each_engine] - SOMETIMES[each_engine] == OPEN[each_engine]
    assert not list(home.glob("escaped*")), "git of harness ran a program of the agent's repository"


def test_the_page_names_each_attack_and_what_each_engine_leaves_open() -> None:
    page = (CHECKOUT / "docs/sandbox.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in page.splitlines()]
    tried = {**ATTACKS, **READS, **WRITES}
    named = {attack: row for row in rows for attack in row[-1].split(", ") if attack in tried}
    assert set(named) == set(tried)
    for column, engine in enumerate(engines.ENGINES, 1):
        is_open = {name for name, row in named.items() if row[column] in ("open", "can be read")}
        assert is_open >= OPEN[engine] | SOMETIMES[engine]
        newer = {name for name, row in named.items() if "Linux 6.12" in row[column]}
        assert newer == NEWER[engine]
