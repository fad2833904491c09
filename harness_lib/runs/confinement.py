"""Choose the sandbox of a run and of each agent, and find out first whether the checks can run in it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from harness_lib import errors, typed
from harness_lib.agents.adapter import Launch
from harness_lib.attempts import worker_worktrees
from harness_lib.checks import check_of
from harness_lib.core.context import Context
from harness_lib.rules import arrows, transitions
from harness_lib.system import fs
from harness_lib.system.git import status
from harness_lib.system.place import data_home, own_files
from harness_lib.system.processes import denied, engines, environment, sandbox, sandbox_places
from harness_lib.task import Task
from harness_lib.text import Strings, some

# What `shell_run` says of a program that is missing.
_NOT_FOUND = re.compile(r"ommand (?:was )?not found: (\S+?)(?: \(|\.(?:\s|$))")
# A script names its interpreter in its first line.
SHEBANG = b"#!"
FIRST_LINE = 4096
# The files of settings in an agent's directories.
SETTINGS = (".json", ".jsonc", ".toml", ".conf")
MOST_BYTES = 8 * 1024 * 1024
# Prints which of its arguments cannot be read: `test -r` does not ask Landlock.
READS = 'for path; do (: < "$path") 2> /dev/null || printf "%s\\n" "$path"; done'


class Asked(NamedTuple):
    """What the user has asked for.

    `write` are paths that agents and checks may write although they are in a sandbox, `env` are credentials
    that they get; `network` is that of checks.
    """

    mode: sandbox.Mode = "off"
    write: Strings = ()
    env: Strings = ()
    network: sandbox.Network = "open"


def of_run(ctx: Context, asked: Asked) -> dict[str, str]:
    """Return the variable that lets agents and checks start in a sandbox.

    Raises EnvSetupError if none starts and one is required, or if a check cannot run in it.
    """
    engine = sandbox.required(asked.mode, ctx.env)
    if engine is None:
        return {}
    data = Path(os.path.realpath(data_home.directory(ctx.env)))
    box = sandbox.of_run(
        engine,
        ctx.env,
        worker_worktrees.home(ctx),
        data,
        sandbox_places.Project(ctx.git.top, ctx.git.common_dir, status.ignored(ctx.git)),
        more=tuple(os.path.realpath(ctx.cwd / Path(path).expanduser()) for path in asked.write),
        kept=asked.env,
        network=asked.network,
    )
    _require_checks(ctx, box)
    return sandbox.noted(box)


def said(env: environment.Env) -> Iterator[str]:
    """Yield what to say of the sandbox of a run with the environment `env`, at its beginning."""
    box = sandbox.of(env)
    if not box:
        why = "neither bubblewrap nor nono-py starts here"
        yield f"sandbox: none, as {why}; install bubblewrap (docs/sandbox.md)"
        return
    yield f"sandbox: {box}"
    if box.network != box.network_of_checks:
        yield f"--network {box.network}: nono would close 127.0.0.1, too, so the network of checks stays open"
    # The socket of Docker or Podman on this machine.
    home = env.get("HOME") or str(Path.home())
    users = [f"/run/user/{os.getuid()}/{name}" for name in ("docker.sock", "podman/podman.sock")]
    places = ("/run/docker.sock", "/run/podman/podman.sock", *users, f"{home}/.docker/run/docker.sock")
    docker = next(filter(os.path.exists, places), None)
    if docker and box.engine == "bubblewrap" and docker not in box.writable:
        allow = typed.harness("run", "--allow-write", docker)
        yield f"agents and checks cannot reach Docker, and tests may be skipped for it; to allow it: {allow}"
    if removed := box.removed(env):
        keep = typed.harness("run", *(word for name in removed for word in ("--allow-env", name)))
        yield f"agents and checks do not get {some(removed)}; to give them: {keep}"


def lift_halts(ctx: Context) -> list[str]:
    """Lift the halts of tasks whose checks can run by now; return a line for each.

    The user has answered such a halt by the options of the run, or has installed what was missing.
    """
    if not any(_answer(task, ctx.env) for task in ctx.ask().halted()):
        return []
    with ctx.transaction("tasks") as tx:
        answered = [(task, said) for task in tx.halted() if (said := _answer(task, ctx.env))]
        for task, _ in answered:
            tx.replace(transitions.halt(task, None))
    return [f"{task.id} goes on: {said}" for task, said in answered]


def _answer(task: Task, env: environment.Env) -> str:
    """Return why the check of a halted task can run by now; "" if that is not known."""
    if task.halt_kind != "ENV_SETUP" or not arrows.may("halt", task):
        return ""
    found = denied.told(task.halt or "")
    if found:
        return "this run allows what the sandbox denied its check" if denied.is_allowed(found[1], env) else ""
    lacked = missing_program(task.halt or "")
    if "/" in lacked or not environment.find(lacked, env.get("PATH", os.defpath)):
        return ""
    return f"{lacked}, which its check needs, is there now"


def missing_program(reason: str) -> str:
    """Return the program that is missing, as `reason` says of a check that cannot run; "" for another one."""
    found = _NOT_FOUND.search(reason)
    return found[1] if found else ""


def way_out(env: environment.Env) -> str:
    """Return what ends a hint about an agent that fails in a sandbox."""
    outside = typed.harness("run", "--sandbox", "off")
    return f". If it works outside of the sandbox: {outside}" if sandbox.of(env) else ""


def of_agent(ctx: Context, launch: Launch, files: Iterable[str]) -> dict[str, str]:
    """Return the variable that confines the agent of `launch`, which may also write `files`.

    Without a sandbox of the run, `hs` starts none of its own.
    """
    if not sandbox.of(ctx.env):
        return {sandbox.CHOICE: "off"}
    homes = list(_homes(ctx, launch))
    made = [name for name in launch.writable if name.endswith("/")]
    for path in (Path(sandbox_places.home_of(ctx.env), name) for name in made):
        _make(path)
    known = "\n".join((*ctx.env, ctx.env.get("HARNESS_PROVIDER", ""), *launch.argv, *_settings(ctx, launch)))
    clouds = [cloud for cloud, words in launch.clouds.items() if any(word in known for word in words)]
    return sandbox.widened(ctx.env, (*launch.writable, *homes, *files), clouds=clouds)


def _homes(ctx: Context, launch: Launch) -> Iterator[str]:
    """Yield the paths of `launch.homes`; what ends with a slash is a directory, and made."""
    for name, slash, below in (each.partition("/") for each in launch.homes):
        if ctx.env.get(name, "").startswith("/"):
            path = f"{ctx.env[name]}{slash}{below}"
            if path.endswith("/"):
                _make(Path(path))
            yield os.path.normpath(path)


def _make(directory: Path) -> None:
    """Make the `directory` of an agent: inside, one that was never used could not.

    An agent may need none, such as that of a home that cannot be written, and otherwise says so itself.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        if errors.passes(error):
            raise


def _settings(ctx: Context, launch: Launch) -> Iterator[str]:
    """Yield the settings of an agent, in the home directory and in the work tree."""
    home = Path(ctx.env.get("HOME") or Path.home())
    for place in (place / name for place in (home, ctx.git.top) for name in launch.writable):
        for file in (place, *sorted(fs.matching(place, "*"))):
            # A home may have directories of root's.
            with suppress(OSError):
                if file.suffix in SETTINGS and file.is_file():
                    yield own_files.read(file, MOST_BYTES).decode("utf-8", "replace")


def _require_checks(ctx: Context, box: sandbox.Sandbox) -> None:
    """Raise EnvSetupError for a check whose program cannot be read in the sandbox."""
    commands: dict[tuple[str | None, str | None], str] = {}
    for task in ctx.ask().claimable():
        for command in check_of(task).commands():
            # Many tasks have the same check.
            commands.setdefault(command, task.id)
    needed: dict[str, str] = {}
    for (text, directory), task_id in commands.items():
        for path in _needed(text or "", ctx.git.top, directory or "", ctx.env):
            needed.setdefault(path, task_id)
    paths = [path for path in needed if os.access(path, os.R_OK)]
    failure, printed = sandbox.trial(box, ["sh", "-c", READS, "sh", *paths], ctx.env, ctx.git.top)
    if failure is not None:
        raise errors.EnvSetupError(
            f"The sandbox of this run does not start: {failure}", "Run without: harness run --sandbox off"
        )
    # What the engine itself says is among it.
    unread = [path for path in printed if path in needed]
    if unread:
        allow = typed.harness("run", "--allow-write", os.path.dirname(unread[0]))  # noqa: PTH120 (a text)
        raise errors.EnvSetupError(
            f"The check of {needed[unread[0]]} cannot run in the sandbox, where {unread[0]} cannot be read.",
            f"Allow it: {allow}. Or run without a sandbox: {typed.harness('run', '--sandbox', 'off')}",
        )


def _needed(command: str, top: Path, cwd: str, env: environment.Env) -> Iterator[str]:
    """Yield the files without which the first program of `command` does not start in a work tree.

    At a relative path below `top`, a work tree has a file of its own.
    """
    word = environment.first_word(command) or ""
    own = [str(top)] if "/" in word and not word.startswith("/") else []
    found = word and environment.program(word, cwd=top / cwd, env=env)
    seen: list[str] = []
    while found and found not in seen:
        seen.append(found)
        files = dict.fromkeys((found, os.path.realpath(found)))
        yield from (path for path in files if not engines.is_within(path, *own))
        found = _interpreter(found, env)


def _interpreter(path: str, env: environment.Env) -> str | None:
    """Return the interpreter that the first line of the script at `path` names; None if it is no script."""
    try:
        with Path(path).open("rb") as stream:
            line = stream.readline(FIRST_LINE)
    except OSError:
        return None
    words: Sequence[str] = line[len(SHEBANG) :].decode("utf-8", "replace").split()
    if not line.startswith(SHEBANG) or not words:
        return None
    if Path(words[0]).name != "env":
        return words[0]
    names = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return environment.find(names[0], env.get("PATH", os.defpath)) if names else None
