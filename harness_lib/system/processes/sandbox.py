"""Run a command in a sandbox: it writes only to its work tree, its temporary directory and caches.

The engines are bubblewrap, and nono-py (Landlock on Linux, Seatbelt on macOS). A run keeps its `Sandbox` in
the variable VARIABLE of its environment. A command that starts in one of its work trees starts in the
sandbox, and does not get the variable. Source: docs/sandbox.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from harness_lib.errors import EnvSetupError

Engine = Literal["bubblewrap", "nono"]
ENGINES: tuple[Engine, ...] = get_args(Engine)
VARIABLE = "HARNESS_IN_SANDBOX"
TRIAL_SECONDS = 60.0

# Below the home directory.
CACHES = (".cache", ".npm", ".cargo/registry", ".cargo/git", ".gradle", ".m2", "go/pkg")
SECRETS = (
    *(".ssh", ".aws", ".azure", ".gnupg", ".kube", ".netrc", ".git-credentials", ".pypirc"),
    *(".config/gh", ".config/gcloud", ".docker/config.json", ".password-store", ".local/share/keyrings"),
    *(".mozilla", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware"),
    *("Library/Keychains", "Library/Application Support/Google/Chrome"),
)
# Sockets through which a program outside could be told to do what the command may not.
SOCKETS = (
    *("/run/user", "/run/dbus", "/run/docker.sock", "/run/containerd", "/run/podman"),
    *("/run/snapd.socket", "/run/systemd/private"),
)
# Variables that could push, or lead to a program outside.
CREDENTIALS = frozenset(
    (
        *("GH_TOKEN", "GITHUB_TOKEN", "GITLAB_TOKEN", "SSH_AUTH_SOCK", "GIT_ASKPASS", "SSH_ASKPASS"),
        *("DBUS_SESSION_BUS_ADDRESS", "TMUX"),
    )
)


class Sandbox(NamedTuple):
    """What a run allows: a command may write its work tree, which is PLACES/RUN/NUMBER for these `places`.

    `writable` are further absolute paths that it may write, `secret` those that it may not read.
    """

    engine: Engine
    places: str
    writable: tuple[str, ...]
    secret: tuple[str, ...]

    def __str__(self) -> str:
        name = "bubblewrap" if self.engine == "bubblewrap" else "Landlock (nono)"
        return f"{name}; writes: its work tree, its temporary directory, caches; network: open"

    def tree(self, cwd: Path) -> Path | None:
        """Return the work tree of a run around `cwd`; None if there is none."""
        try:
            run, number, *_ = cwd.relative_to(self.places).parts
        except ValueError:
            return None
        return Path(self.places, run, number)


def find(env: Mapping[str, str], engines: Sequence[Engine] = ENGINES) -> tuple[Engine | None, str]:
    """Return the first of `engines` that can start a command on this machine, and why the others cannot."""
    failures: list[str] = []
    for engine in engines:
        failure = _try(engine, env)
        if failure is None:
            return engine, "; ".join(failures)
        failures.append(f"{engine}: {failure}")
    return None, "; ".join(failures)


def _try(engine: Engine, env: Mapping[str, str]) -> str | None:
    """Start a command with `engine`; return why that failed, None if it did not."""
    with tempfile.TemporaryDirectory() as place:
        try:
            command = _command(Sandbox(engine, place, (), ()), "true", Path(place), Path(place), env)
            done = subprocess.run(
                command, env=env, cwd=place, capture_output=True, timeout=TRIAL_SECONDS, check=False
            )
        except FileNotFoundError as error:
            return f"{error.filename} is not on the PATH"
        except (EnvSetupError, OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return (words[-1] if words else f"exit {done.returncode}") if done.returncode else None


def of_run(
    engine: Engine, env: Mapping[str, str], places: Path, data: Path, more: tuple[str, ...]
) -> Sandbox:
    """Return the sandbox of a run whose work trees are below `places`; `more` may be written, too.

    `data` is the data directory of harness: its held-out checks are secret.
    """
    home = _home(env)
    caches = [*(str(home / name) for name in CACHES), env.get("XDG_CACHE_HOME", "")]
    secret = [*(home / name for name in SECRETS), data / "hidden"]
    return Sandbox(
        engine,
        str(places),
        tuple(os.path.realpath(path) for path in (*caches, *more) if path.startswith("/")),
        tuple(str(path) for path in secret),
    )


def noted(sandbox: Sandbox) -> dict[str, str]:
    """Return the variable with which commands start in `sandbox`."""
    return {VARIABLE: json.dumps(sandbox)}


def of(env: Mapping[str, str]) -> Sandbox | None:
    """Return the sandbox that `env` names; None if it names none."""
    text = env.get(VARIABLE)
    if not text:
        return None
    engine, places, writable, secret = json.loads(text)
    return Sandbox(engine, places, tuple(writable), tuple(secret))


def widened(env: Mapping[str, str], paths: tuple[str, ...]) -> dict[str, str]:
    """Return the variable of `env` for a command that may also write `paths`, which begin at the home."""
    sandbox = of(env)
    if sandbox is None:
        return {}
    home = _home(env)
    return noted(sandbox._replace(writable=(*sandbox.writable, *(str(home / path) for path in paths))))


@contextmanager
def entered(command: str, env: Mapping[str, str], cwd: Path) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Yield the arguments and environment that run `sh -c command`, in the sandbox of `env` if it has one."""
    sandbox = of(env)
    inside = {name: value for name, value in env.items() if name != VARIABLE}
    tree = sandbox and sandbox.tree(cwd)
    if sandbox is None or tree is None:
        yield ["sh", "-c", command], inside
        return
    inside = {name: value for name, value in inside.items() if name not in CREDENTIALS}
    with tempfile.TemporaryDirectory(prefix="harness-", ignore_cleanup_errors=True) as temporary:
        inside["TMPDIR"] = temporary
        yield _command(sandbox, command, tree, Path(temporary), inside), inside


def _home(env: Mapping[str, str]) -> Path:
    return Path(os.path.realpath(env.get("HOME") or Path.home()))


def _command(
    sandbox: Sandbox, command: str, tree: Path, temporary: Path, env: Mapping[str, str]
) -> list[str]:
    writable = [str(tree), str(temporary), *(path for path in sandbox.writable if os.path.lexists(path))]
    secret = [path for path in sandbox.secret if os.path.lexists(path)]
    if sandbox.engine == "bubblewrap":
        return _bubblewrap(command, writable, [*secret, *filter(os.path.lexists, SOCKETS)])
    return _nono(command, writable, secret, env)


def _bubblewrap(command: str, writable: list[str], hidden: list[str]) -> list[str]:
    arguments = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for path in writable:
        arguments += ["--bind", path, path]
    for path in hidden:
        # A link is followed: what it leads to is hidden.
        real = os.path.realpath(path)
        arguments += ["--tmpfs", real] if Path(real).is_dir() else ["--ro-bind", "/dev/null", real]
    ends = ["--unshare-pid", "--unshare-ipc", "--die-with-parent"]
    return [*arguments, *ends, "sh", "-c", command]


def _nono(command: str, writable: list[str], secret: list[str], env: Mapping[str, str]) -> list[str]:
    from harness_lib.system.install import launcher  # noqa: PLC0415 (hooks and most verbs need none)

    code = "from harness_lib.system.processes import sandbox; sandbox.enter()"
    home = _home(env)
    readable = list(_all_but([*secret, *SOCKETS, str(home)])) + list(_all_but(secret, home))
    return [*launcher.confiner(code, env), json.dumps([readable, writable]), command]


def _all_but(hidden: list[str], top: Path = Path("/")) -> Iterator[str]:
    """Yield the entries at and below `top` that together hold everything but `hidden`.

    Landlock allows trees, and cannot forbid a part of one.
    """
    real = [os.path.realpath(path) for path in hidden]
    try:
        entries = sorted(top.iterdir())
    except OSError:
        return
    for entry in entries:
        path = str(entry)
        if entry.is_symlink() or path in real:
            continue
        if any(each.startswith(f"{path}/") for each in real):
            yield from _all_but(hidden, entry)
        else:
            yield path


def enter() -> None:
    """Let nono apply the first argument, [readable, writable], to this process; then run the second one."""
    import sys  # noqa: PLC0415 (as below: only in the process that is to be confined)

    import nono_py  # noqa: PLC0415

    capabilities = nono_py.CapabilitySet()
    readable, writable = json.loads(sys.argv[1])
    modes = [(path, nono_py.AccessMode.READ) for path in readable]
    modes += [(path, nono_py.AccessMode.READ_WRITE) for path in (*writable, "/dev")]
    for path, mode in modes:
        if Path(path).is_dir():
            capabilities.allow_path(path, mode)
        elif Path(path).is_file():
            capabilities.allow_file(path, mode)
    nono_py.apply(capabilities)
    os.execv("/bin/sh", ["sh", "-c", sys.argv[2]])  # noqa: S606
