"""What an agent reads and writes for twenty tasks: with our commands, and under the legacy protocol.

Counted are the bytes of the page that tells it what to do, of what it types, and of what it is answered. The
work itself is left out on both sides, and so is what a host adds to each call: we need fewer of them. The
agent of the legacy protocol is as sparing as the legacy protocol allows: it reads the list once and remembers
it, takes the lock once, edits the list with `jq` by position, and lets no command print what it does not have
to know. Ours ends at the reply that says `stop`, as SKILL.md says; the session is closed by then. A second
one looks at the list before it chooses a task, as most do; it is shown beside, without a bar.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.measuring import Row
from benchmarks.projects import CHECKOUT
from harness_lib.core import trust
from harness_lib.core.context import Context
from harness_lib.state import codec
from harness_lib.task import SessionConfig, Task, Validation
from harness_lib.verbs import init
from tests.contention import crowd

TASKS = 20
FAILS = 7  # the first attempt at this one does
BAR = 0.25
# The size in bytes of the original's page, seeds/harness-skill.md; the page itself is not ours to publish.
PROSE_PAGE = 21_034
# Where `npx skills add -g` puts the program; SKILL.md says to type its path.
LAUNCHER = "~/.claude/skills/harness/bin/harness"
LIST = "harness-tasks.json"
LOG = "harness-progress.txt"
LOCK = """\
LOCKDIR=/tmp/harness-$(printf %s "$PWD"|sha256sum|cut -c1-16).lock
if ! mkdir "$LOCKDIR" 2>/dev/null; then
LOCK_PID=$(cat "$LOCKDIR/pid" 2>/dev/null)
if [ -n "$LOCK_PID" ]&&kill -0 "$LOCK_PID" 2>/dev/null;then echo "active (pid=$LOCK_PID)";exit 1;fi
mv "$LOCKDIR" "$LOCKDIR.stale.$$"&&rm -rf "$LOCKDIR.stale.$$"&&mkdir "$LOCKDIR"||exit 1
fi
echo $$ >"$LOCKDIR/pid";trap 'rm -rf "$LOCKDIR"' EXIT"""


@dataclass
class Talk:
    """One agent at work in `place`: what it typed and read so far, in bytes by kind."""

    place: Path
    bytes: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """All that was read and written."""
        return sum(self.bytes.values())

    def reads_page(self, size: int) -> None:
        """Count the page that tells the agent what to do."""
        self.bytes["page"] += size

    def types(self, typed: str, run: str | None = None) -> int:
        """Run `run` (default: what is typed) in a shell, count both directions, and return the exit code."""
        done = subprocess.run(
            ["bash", "-c", run or typed],
            cwd=self.place,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        self.bytes["commands"] += len(typed.encode())
        self.bytes["answers"] += len(done.stdout)
        return done.returncode

    def works(self, number: int, attempt: int) -> None:
        """Do the work of a task, which costs nothing here; the first attempt at one of them goes wrong."""
        name = "wrong" if number == FAILS and attempt == 1 else f"part-{number:02d}.txt"
        (self.place / name).write_text(f"{number}\n", "ascii")

    def told(self) -> str:
        """Return what the bytes are."""
        return ", ".join(f"{kind} {size:,}" for kind, size in self.bytes.items())


def compare(place: Path) -> list[Row]:
    """Let both do the same twenty tasks."""
    if shutil.which("jq") is None:
        return [
            Row(
                "bytes of the protocol",
                f"≤ {BAR:g} times the legacy protocol",
                "not measured: there is no jq",
            )
        ]
    ours, legacy = _ours(_project(place / "ours")), _legacy(_project(place / "legacy"), rereads=False)
    letter = _legacy(_project(place / "letter"), rereads=True)
    ratio = ours.total / legacy.total
    what = f"bytes that an agent reads and writes for the protocol, {TASKS} tasks"
    return [
        Row(
            what,
            f"≤ {BAR:g} times the most sparing agent of the legacy protocol",
            f"{ratio:.2f}",
            ratio <= BAR,
        ),
        Row(f"{what}: reading the list before each choice", "", f"{ours.total / letter.total:.2f}"),
        *[
            Row(f"{what}: {who}", "", f"{talk.total // TASKS:,} per task ({talk.told()})")
            for who, talk in (
                ("ours", ours),
                ("most sparing agent of the legacy protocol", legacy),
                ("reading", letter),
            )
        ],
    ]


def _title(number: int) -> str:
    return f"Write part {number:02d} of the report, as agreed"


def _check(number: int) -> str:
    return f"test -f part-{number:02d}.txt"


def _project(place: Path) -> Talk:
    """Return an agent in a new repository with the list of twenty tasks; no limit ends the session early."""
    place.mkdir(parents=True)
    ctx = Context(env={**os.environ, "HARNESS_STATE_ROOT": str(place)}, cwd=place)
    init.run(ctx, make_git=True)
    tasks = [
        Task(crowd.task_id(n), _title(n), validation=Validation(command=_check(n)))
        for n in range(1, TASKS + 1)
    ]
    config = SessionConfig(max_tasks_per_session=0, max_sessions=0)
    with ctx.store.transaction() as tx:
        tx.configure(config)
        tx.add(tasks)
    trust.note(ctx, ctx.store.ask())
    return Talk(place.resolve())


# -- by our commands


def _ours(talk: Talk) -> Talk:
    talk.reads_page((CHECKOUT / "SKILL.md").stat().st_size)
    _harness(talk, "start")
    for number, attempt in _order():
        _harness(talk, "claim")
        talk.works(number, attempt)
        _harness(talk, "checkpoint", "1/2", "the text is written")
        code = _harness(talk, "finish")
        assert code == (1 if (number, attempt) == (FAILS, 1) else 0), (number, attempt, code)
    assert _harness(talk, "validate", "--all", "--committed") == 0
    _assert_done(talk)
    return talk


def _harness(talk: Talk, *argv: str) -> int:
    words = shlex.join(argv)
    return talk.types(f"{LAUNCHER} {words}", f"exec {shlex.quote(sys.executable)} -m harness_lib {words}")


def _order() -> list[tuple[int, int]]:
    """Return (task, attempt) as both choose them: what failed comes again after all that are pending."""
    return [*((n, 1) for n in range(1, TASKS + 1)), (FAILS, 2)]


def _assert_done(talk: Talk) -> None:
    state = codec.decode(json.loads((talk.place / LIST).read_bytes()))
    assert all(task.status == "completed" for task in state.tasks), "the list should be done"


# -- by the legacy protocol


_NOW = "'$(date -u +%FT%TZ)'"
_LATER = "'$(date -u -d 30min +%FT%TZ)'"
_HEAD = "'$(git rev-parse HEAD)'"
_SHORT = "$(git rev-parse --short HEAD)"


def _legacy(talk: Talk, *, rereads: bool) -> Talk:
    """Follow the legacy protocol from session start to end; `rereads`: with a look before each choice."""
    # As the legacy protocol leaves a list: two blanks of indentation, a field a line, and no open session of
    # ours.
    document = json.loads((talk.place / LIST).read_bytes())
    document = {key: value for key, value in document.items() if key != "sessions"}
    (talk.place / LIST).write_text(json.dumps(document, indent=2) + "\n", "utf-8")
    talk.reads_page(PROSE_PAGE)
    talk.types(f"tail -200 {LOG};cat {LIST};git log --oneline -20;git diff --stat")
    taken = _line("LOCK acquired (pid=$$)")
    talk.types(f"touch .harness-active\n{LOCK}\n{taken}\n{_edit('.session_count+=1')}")
    for number, attempt in _order():
        if rereads:
            talk.types(f"cat {LIST}")
        _legacy_attempt(talk, number, attempt)
    stats = f"STATS tasks_total={TASKS} completed={TASKS} failed=0 pending=0 blocked=0 attempts_total=1"
    ended = _edit(f'.last_session="{_NOW}"')
    told = (_line(f"{stats} checkpoints={TASKS + 1}"), _line("LOCK released"))
    talk.types("\n".join([ended, *told, "rm .harness-active"]))
    _assert_done(talk)
    return talk


def _legacy_attempt(talk: Talk, number: int, attempt: int) -> None:
    """Claim the task, note one step of it, run its check, and record how that went."""
    at, name = f".tasks[{number - 1}]", crowd.task_id(number)
    claim = f'status:"in_progress",claimed_by:"me",lease_expires_at:"{_LATER}",started_at_commit:"{_HEAD}"'
    started = _line(f"Starting [{name}] {_title(number)} (base={_SHORT})")
    talk.types(f"{_edit(f'{at}+={{{claim}}}')}\n{started}")
    talk.works(number, attempt)
    text = "the text is written"
    point = f'{at}.checkpoints+=[{{step:1,total:2,description:"{text}",timestamp:"{_NOW}"}}]'
    noted = _line(f'CHECKPOINT [{name}] step=1/2 \\"{text}\\"')
    talk.types(f"{_edit(point)}\n{noted}")
    # Its exit code is what the agent reads; a host tells it for nothing.
    if talk.types(f"command -v test&&timeout 300 {_check(number)}"):
        _legacy_fails(talk, at, name)
        return
    commit = f"git add -A&&git commit -qm '[{name}] {_title(number)}'"
    done = _edit(f'{at}+={{status:"completed",completed_at:"{_NOW}"}}')
    completed = _line(f"Completed [{name}] (commit {_SHORT})")
    talk.types(f"{commit}\n{done}\n{completed}")


def _legacy_fails(talk: Talk, at: str, name: str) -> None:
    """Go back to where the task was claimed, and record that."""
    base = f"b=$(jq -r {at}.started_at_commit {LIST})"
    back = "git cat-file -t $b&&git reset -q --hard $b&&git clean -fdq"
    failed = _edit(f'{at}|=(.status="failed"|.attempts+=1|.error_log+=["[TEST_FAIL] exit 1"])')
    error, rollback = f"ERROR [{name}] [TEST_FAIL] exit 1", f"ROLLBACK [{name}] git reset --hard $b"
    talk.types("\n".join([base, back, failed, _line(error), _line(rollback)]))


def _edit(change: str) -> str:
    """Return the shell that changes the list as the backup protocol says: a copy, a file beside, a move."""
    return f"cp {LIST} {LIST}.bak;jq '{change}' {LIST}>{LIST}.tmp&&mv {LIST}.tmp {LIST}"


def _line(text: str) -> str:
    """Return the shell that appends a line to the log."""
    return f'echo "[$(date -u +%FT%TZ)] [SESSION-1] {text}">>{LOG}'
