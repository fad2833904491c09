"""An agent that follows the original legacy by hand: shell for the lock, JSON by hand, git by hand.

It knows nothing of our code, so that what it understands is what every such agent understands. Where the
legacy protocol leaves a choice, it takes the one that is worst for us: it is strict about the fields and
types that the legacy protocol documents, sorts ids as text, and lets every other key pass untouched.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tests.protocol.documented import STATUSES, Document, require_documented

# Finds the root upwards, hashes it, takes the directory or says who has it; holds it until its input ends.
LOCK = """
root=$PWD here=$PWD
while [ "$here" != / ]; do
    if [ -f "$here/harness-tasks.json" ]; then root=$here; break; fi
    here=$(dirname "$here")
done
key=$(printf '%s' "$root" | (shasum -a 256 2>/dev/null || sha256sum) | awk '{print $1}' | cut -c1-16)
lock=/tmp/harness-$key.lock
taken=taken
if ! mkdir "$lock" 2>/dev/null; then
    holder=$(cat "$lock/pid" 2>/dev/null)
    if [ -n "$holder" ] && kill -0 "$holder" 2>/dev/null; then echo "active $holder"; exit 1; fi
    mv "$lock" "$lock.stale.$$" 2>/dev/null || { echo lost; exit 1; }
    rm -rf "$lock.stale.$$"
    mkdir "$lock" || { echo lost; exit 1; }
    taken="reclaimed $holder"
fi
trap 'rm -rf "$lock"' EXIT
echo $$ >"$lock/pid"
echo "$taken"
read -r _
"""


class ActiveError(Exception):
    """Somebody else has the lock; the argument is what the recipe said."""


def now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class LegacyAgent:
    """The agent at work in `top`; `number` is the session it is in."""

    top: Path
    number: int = 0
    holder: subprocess.Popen[str] | None = field(default=None, init=False)

    # -- files

    @property
    def file(self) -> Path:
        return self.top / "harness-tasks.json"

    def read(self) -> Document:
        return require_documented(json.loads(self.file.read_text()))

    def write(self, document: Document) -> None:
        """Back up, write beside, move into place."""
        if self.file.exists():
            shutil.copyfile(self.file, self.top / "harness-tasks.json.bak")
        beside = self.top / "harness-tasks.json.tmp"
        beside.write_text(json.dumps(document, indent=2) + "\n")
        beside.replace(self.file)

    def edit(self, task_id: str, **fields: Any) -> Document:
        """Read, change fields of one task, write; return the task."""
        document = self.read()
        task = next(task for task in document["tasks"] if task["id"] == task_id)
        task.update(fields)
        self.write(document)
        return dict(task)

    def task(self, task_id: str) -> Document:
        return next(dict(task) for task in self.read()["tasks"] if task["id"] == task_id)

    def log(self, text: str) -> None:
        with (self.top / "harness-progress.txt").open("a") as stream:
            stream.write(f"[{now()}] [SESSION-{self.number}] {text}\n")

    def git(self, *args: str, check: bool = True) -> str:
        done = subprocess.run(["git", *args], cwd=self.top, capture_output=True, text=True, check=False)
        assert done.returncode == 0 or not check, (args, done.stderr)
        return done.stdout.strip()

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    # -- the lock

    def lock(self, cwd: Path | None = None) -> str:
        """Type the recipe in `cwd`: return "taken" or "reclaimed PID"; raises ActiveError."""
        self.holder = subprocess.Popen(
            ["sh", "-c", LOCK], cwd=cwd or self.top, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.holder.stdout is not None
        answer = self.holder.stdout.readline().strip()
        if not answer.startswith(("taken", "reclaimed")):
            self.unlock()
            raise ActiveError(answer)
        return answer

    def unlock(self) -> None:
        """End the shell that holds the lock; its trap removes the directory."""
        if self.holder is not None:
            self.holder.communicate()
            self.holder = None

    def crash(self) -> int:
        """Die with the lock in the hand; return the dead pid that stays in it."""
        assert self.holder is not None
        self.holder.kill()
        self.holder.communicate()
        pid, self.holder = self.holder.pid, None
        return pid

    # -- commands

    def init(self, *tasks: Document, **config: Any) -> None:
        """Make the files by hand; the user said yes to .gitignore."""
        ignored = "harness-*\n.harness-active\n.harness/\n"
        (self.top / ".gitignore").write_text(ignored)
        self.git("add", ".gitignore")
        self.git("commit", "-q", "-m", "Ignore harness files")
        (self.top / ".harness-active").touch()
        self.log(f"INIT Harness initialized for project {self.top}")
        limits = {"concurrency_mode": "exclusive", "max_tasks_per_session": 20, "max_sessions": 50}
        self.write(
            {
                "version": 2,
                "created": now(),
                "session_config": {**limits, **config},
                "tasks": list(tasks),
                "session_count": 0,
                "last_session": None,
            }
        )

    # -- a session

    def start(self) -> None:
        """Session Start: lock, recover, count."""
        self.lock()
        self.number = self.read()["session_count"] + 1
        assert self.holder is not None
        self.log(f"LOCK acquired (pid={self.holder.pid})")
        for task in self.read()["tasks"]:
            if task["status"] == "in_progress":
                self.recover(task)
        document = self.read()
        document["session_count"] = self.number
        self.write(document)

    def end(self) -> None:
        """Statistics, last_session, release; the enable flag goes when nothing is left."""
        document = self.read()
        document["last_session"] = now()
        self.write(document)
        tasks = document["tasks"]
        by = {status: sum(task["status"] == status for task in tasks) for status in STATUSES}
        self.log(
            f"STATS tasks_total={len(tasks)} completed={by['completed']} failed={by['failed']} "
            f"pending={by['pending']} blocked=0 attempts_total={sum(task['attempts'] for task in tasks)} "
            f"checkpoints={sum(len(task['checkpoints']) for task in tasks)}"
        )
        if all(_is_settled(task) for task in tasks):
            (self.top / ".harness-active").unlink(missing_ok=True)
        self.unlock()
        self.log("LOCK released")

    def pick(self) -> Document | None:
        """Pending ones by priority and id, as text; then failed ones with attempts left."""
        tasks = self.read()["tasks"]
        done = {task["id"] for task in tasks if task["status"] == "completed"}
        able = [task for task in tasks if done.issuperset(task["depends_on"]) and not _is_settled(task)]
        for status in ("pending", "failed"):
            candidates = [task for task in able if task["status"] == status]
            if candidates:
                return dict(min(candidates, key=lambda task: (task["priority"], task["id"])))
        return None

    def claim(self, task_id: str, **fields: Any) -> Document:
        task = self.edit(task_id, status="in_progress", started_at_commit=self.head, **fields)
        self.log(f"Starting [{task_id}] {task['title']} (base={self.head[:7]})")
        return task

    def checkpoint(self, task_id: str, step: int, total: int, text: str) -> None:
        points = self.task(task_id)["checkpoints"]
        point = {"step": step, "total": total, "description": text, "timestamp": now()}
        self.edit(task_id, checkpoints=[*points, point])
        self.log(f'CHECKPOINT [{task_id}] step={step}/{total} "{text}"')

    def finish(self, task_id: str) -> bool:
        """Validate; commit and complete, or reset to the base and fail."""
        task = self.task(task_id)
        if self._passes(task):
            self._complete(task)
            return True
        self._fail(task, "TEST_FAIL", "the check says no")
        return False

    def recover(self, task: Document) -> None:
        """Carry out the decision matrix for a task that an earlier session left in progress."""
        dirty = bool(self.git("status", "--porcelain"))
        base = task["started_at_commit"]
        named = f"--grep={re.escape(task['id'])}"
        commits = self.git("log", "--format=%h", named, f"{base}..HEAD")
        if not dirty and not commits:
            action, reason = "mark failed", "No progress detected"
            self._failed(task, "SESSION_TIMEOUT", reason)
        elif self._passes(task):
            action, reason = "mark completed", "the check passes"
            self._complete(task)
        else:
            action, reason = "roll back", "the check fails"
            self._fail(task, "SESSION_TIMEOUT", reason)
        self.log(f'RECOVERY [{task["id"]}] action="{action}" reason="{reason}"')

    def _passes(self, task: Document) -> bool:
        command, seconds = task["validation"]["command"], task["validation"]["timeout_seconds"]
        assert command
        wrapped = ["timeout", str(seconds), "sh", "-c", command]
        done = subprocess.run(
            wrapped, cwd=self.top, capture_output=True, stdin=subprocess.DEVNULL, check=False
        )
        return done.returncode == 0

    def _complete(self, task: Document) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", f"[{task['id']}] {task['title']}")
        self.edit(task["id"], status="completed", completed_at=now())
        self.log(f"Completed [{task['id']}] (commit {self.head[:7]})")

    def _fail(self, task: Document, category: str, message: str) -> None:
        """Take back all commits and all untracked files."""
        base = task["started_at_commit"]
        assert self.git("cat-file", "-t", base) == "commit"
        self.git("reset", "-q", "--hard", base)
        self.git("clean", "-fdq")
        self._failed(task, category, message)
        self.log(f"ROLLBACK [{task['id']}] git reset --hard {base[:7]}")

    def _failed(self, task: Document, category: str, message: str) -> None:
        errors = [*task["error_log"], f"[{category}] {message}"]
        self.edit(task["id"], status="failed", attempts=task["attempts"] + 1, error_log=errors)
        self.log(f"ERROR [{task['id']}] [{category}] {message}")


def _is_settled(task: Document) -> bool:
    """Return whether nothing is left to do for it: completed, or failed for good."""
    if task["status"] == "failed":
        blocked = any("[DEPENDENCY]" in text for text in task["error_log"])
        return blocked or task["attempts"] >= task["max_attempts"]
    return bool(task["status"] == "completed")


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
