"""Run a command in a sandbox: it writes only to its work tree, its temporary directory and caches.

A run keeps its `Sandbox` in the variable VARIABLE of its environment. A command that starts in one of its
work trees starts in the sandbox, and does not get the variable. `engines.py` makes the command lines.
Source: docs/sandbox.md.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from harness_lib.errors import EnvSetupError
from harness_lib.system.processes import child, engines, environment
from harness_lib.system.processes.engines import ENGINES, TITLES, Engine, Grants

Network = Literal["open", "loopback", "none"]
NETWORKS: tuple[Network, ...] = get_args(Network)
Mode = Literal["off", "auto", "require", "bubblewrap", "nono"]
MODES: tuple[Mode, ...] = get_args(Mode)
# Chooses the mode, of runs and of `hs`.
CHOICE = "HARNESS_SANDBOX"
VARIABLE = "HARNESS_IN_SANDBOX"
# Tells a command in a sandbox which engine confines it.
INSIDE = "HARNESS_SANDBOXED_BY"
TRIAL_SECONDS = 60.0

# Below the home directory, each with the program that makes it.
CACHES = {
    ".cache": "sh",
    ".npm": "npm",
    ".local/share/pnpm/store": "pnpm",
    ".yarn/berry": "yarn",
    ".bun/install/cache": "bun",
    ".cargo/registry": "cargo",
    ".cargo/git": "cargo",
    ".gradle": "gradle",
    ".m2": "mvn",
    ".ivy2": "sbt",
    ".nuget/packages": "dotnet",
    ".pub-cache": "dart",
    "go/pkg": "go",
}
# Variables that say where a cache is.
CACHES_NAMED = (
    *("XDG_CACHE_HOME", "PIP_CACHE_DIR", "UV_CACHE_DIR", "npm_config_cache", "NPM_CONFIG_CACHE", "GOCACHE"),
    *("GOMODCACHE", "GRADLE_USER_HOME", "YARN_CACHE_FOLDER", "PLAYWRIGHT_BROWSERS_PATH"),
)
SECRETS = (
    *(".ssh", ".gnupg", ".kube", ".netrc", ".pgpass", ".git-credentials", ".pypirc", ".docker/config.json"),
    *(".password-store", ".local/share/keyrings", ".cargo/credentials.toml", ".cargo/credentials"),
    *(".config/git/credentials", ".config/glab-cli", ".config/hub", ".terraform.d/credentials.tfrc.json"),
    *(".mozilla", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware"),
    *("Library/Keychains", "Library/Application Support/Google/Chrome"),
)
# Sockets, and directories of sockets, through which a program outside could be told to do what the command
# may not. The last ones are below the home directory.
SOCKETS = (
    *("/run/user", "/run/dbus", "/run/docker.sock", "/run/containerd", "/run/podman", "/run/screen"),
    *("/run/snapd.socket", "/run/systemd/private", "/run/libvirt", "/run/lxd", "/run/incus", "/run/crio"),
)
SOCKETS_AT_HOME = (".docker/run", ".docker/desktop", ".colima", ".lima", ".orbstack/run", ".rd")
# Variables that could push, or lead to a program outside.
CREDENTIALS = frozenset(
    (
        *("GITLAB_TOKEN", "BITBUCKET_TOKEN", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "GIT_ASKPASS", "SSH_ASKPASS"),
        *(
            "DBUS_SESSION_BUS_ADDRESS",
            "DBUS_SYSTEM_BUS_ADDRESS",
            "TMUX",
            "STY",
            "NVIM",
            "VSCODE_IPC_HOOK_CLI",
        ),
        *("VSCODE_GIT_IPC_HANDLE", "VSCODE_GIT_ASKPASS_MAIN", "TWINE_PASSWORD", "CARGO_REGISTRY_TOKEN"),
        *("DIGITALOCEAN_ACCESS_TOKEN", "CLOUDFLARE_API_TOKEN", "HEROKU_API_KEY", "FLY_API_TOKEN"),
        *("VERCEL_TOKEN", "NETLIFY_AUTH_TOKEN", "KUBECONFIG"),
    )
)


class Cloud(NamedTuple):
    """The credentials of one provider: variables, and paths below the home directory."""

    variables: tuple[str, ...]
    paths: tuple[str, ...]


CLOUDS = {
    "aws": Cloud(
        (
            *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"),
            *("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_AUTHORIZATION_TOKEN"),
        ),
        (".aws",),
    ),
    "google": Cloud(("GOOGLE_APPLICATION_CREDENTIALS",), (".config/gcloud",)),
    "azure": Cloud(
        ("AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PATH", "ARM_CLIENT_SECRET"), (".azure",)
    ),
    "github": Cloud(("GH_TOKEN", "GITHUB_TOKEN", "GH_ENTERPRISE_TOKEN"), (".config/gh",)),
}
# A login of `hs` that is the project's.
LOGIN = Path(".harness", ".auth.json")
# What git ignores in the user's checkout and a check needs: a copied .venv points to the original.
SHOWN = re.compile(r"\.venv|node_modules|__pycache__|\.harness|harness-[^/]*|harness\.toml")
# More ignored paths than these, in characters, are hidden by hiding the directories around them.
MOST_IGNORED = 16_000
# Settings of git with a password or token in them.
_PASSWORD = re.compile(rb"://[^/\s@]*:[^/\s@]*@|extraheader", re.IGNORECASE)


class Sandbox(NamedTuple):
    """What a run allows: a command may write its work tree, which is PLACES/RUN/NUMBER for these `places`.

    All paths are absolute. `writable` are further ones that it may write, `secret` those that it may not
    read, `shown` those that it may read although they are below a secret or a temporary directory. `kept`
    are the names of credentials that stay in its environment. `network` is for checks (`is_check`).
    `protected` are those that it may not write although they are below a writable one; nono cannot do this.
    `checkout` is the user's own, and its git directory, for what runs there: `harness-init.sh`, cleanups.
    """

    engine: Engine
    places: str
    writable: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    network: Network = "open"
    is_check: bool = False
    protected: tuple[str, ...] = ()
    checkout: tuple[str, ...] = ()

    def __str__(self) -> str:
        network = "open" if self.network == "open" else f"{self.network_of_checks} for checks"
        writes = "its work tree, its temporary directory, caches"
        return f"{TITLES[self.engine]}; writes: {writes}; network: {network}"

    @property
    def network_of_checks(self) -> Network:
        """The network that the engine can give: nono cannot keep only the loopback interface."""
        return "open" if self.engine == "nono" and self.network == "loopback" else self.network

    def tree(self, cwd: Path) -> Path | None:
        """Return the work tree of a run around `cwd`; None if there is none."""
        try:
            run, number, *_ = cwd.relative_to(self.places).parts
        except ValueError:
            return None
        return Path(self.places, run, number)

    def in_checkout(self) -> Sandbox:
        """Return the sandbox of a command in the user's checkout: it may write there, and read all of it."""
        top, git = self.checkout
        kept = [path for path in self.secret if not is_within(path, top) or is_within(path, git)]
        protected = [
            *_protected(Path(git)),
            *(f"{top}/{name}" for name in (LOGIN.parent, "harness-tasks.json")),
        ]
        return self._replace(
            secret=(*kept, f"{top}/{LOGIN}"),
            writable=(*self.writable, git),
            protected=tuple(
                path for path in protected if not any(is_within(path, each) for each in self.writable)
            ),
        )

    def removed(self, env: Mapping[str, str]) -> list[str]:
        """Return the names of the credentials in `env` that no command gets."""
        names = CREDENTIALS.union(*(cloud.variables for cloud in CLOUDS.values()))
        return sorted(name for name in names.difference(self.kept) if env.get(name))

    def grants(self, tree: Path, temporary: Path, env: Mapping[str, str], command: str) -> Grants:
        """Return what `command` may read and write in the work tree `tree`."""
        there = [path for path in self.writable if os.path.lexists(path)]
        named = _temporary(command, env)
        # The link beside a work tree leads to its project.
        shown = [*self.shown, f"{tree}.git"]
        hidden = [*self.secret, *SOCKETS]
        if self.engine == "bubblewrap":
            own = (str(tree), str(temporary), *there)
            sockets = _listening(str(_home(env)))
            hidden += (path for path in sockets if not any(is_within(path, each) for each in own))
        shown += [path for path in named if not any(is_within(path, each) for each in self.secret)]
        return Grants(
            str(temporary),
            tuple(dict.fromkeys((str(tree), *there))),
            tuple(dict.fromkeys(path for path in hidden if os.path.lexists(path))),
            tuple(dict.fromkeys(path for path in shown if os.path.lexists(path))),
            tuple(path for path in self.protected if os.path.lexists(path)),
            str(_home(env)),
        )


def _listening(home: str) -> Iterator[str]:
    """Yield the sockets of programs below `home`, such as editors: a read-only one can be connected to."""
    try:
        lines = Path("/proc/net/unix").read_bytes().splitlines()
    except OSError:
        return
    for line in lines:
        path = os.fsdecode(line.partition(b" /")[2])
        if path and is_within(f"/{path}", home):
            yield f"/{path}"


def _temporary(command: str, env: Mapping[str, str]) -> Iterator[str]:
    """Yield the paths below temporary directories that the command or a variable names, but no sockets."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    named = {part for text in (*words, *env.values()) for part in (text, *text.split(os.pathsep))}
    for path in named:
        if path.startswith(tuple(f"{place}/" for place in engines.PRIVATE)) and "\0" not in path:
            try:
                mode = os.stat(path).st_mode  # noqa: PTH116 (a text of the user's)
            except OSError:
                continue
            if not stat.S_ISSOCK(mode):
                yield os.path.realpath(path)


def default() -> Mode:
    """Return the mode where none was chosen: on macOS no sandbox was tried."""
    return "off" if sys.platform == "darwin" else "auto"


def required(mode: Mode, env: Mapping[str, str]) -> Engine | None:
    """Return the engine of `mode`; None for none. Raises EnvSetupError if it has to start and does not."""
    with requiring(mode, env) as engine:
        return engine()


@contextmanager
def requiring(mode: Mode, env: Mapping[str, str]) -> Iterator[Callable[[], Engine | None]]:
    """Start to look for the engine of `mode`; yield a function that waits for it like `required`."""
    wanted = [each for each in ENGINES if mode in ("auto", "require", each)]
    with finding(env, wanted) as found:

        def engine() -> Engine | None:
            first, failures = found()
            if first is None and mode not in ("off", "auto"):
                raise EnvSetupError(
                    f"No sandbox can be started on this machine. {failures}",
                    "Install bubblewrap (the program is bwrap), or go without one: --sandbox off",
                )
            return first

        yield engine


def find(env: Mapping[str, str], wanted: Sequence[Engine] = ENGINES) -> tuple[Engine | None, str]:
    """Return the first of `wanted` that can start a command on this machine, and why the others cannot."""
    with finding(env, wanted) as found:
        return found()


@contextmanager
def finding(
    env: Mapping[str, str], wanted: Sequence[Engine]
) -> Iterator[Callable[[], tuple[Engine | None, str]]]:
    """Start to try the first of `wanted`; yield a function that waits for it, then does what `find` does."""
    if not wanted:
        yield lambda: (None, "")
        return
    engine, *others = wanted
    with (
        tempfile.TemporaryDirectory() as place,
        _trying(Sandbox(engine, place), "true", env, Path(place)) as verdict,
    ):

        def found() -> tuple[Engine | None, str]:
            failure, _ = verdict()
            if failure is None:
                return engine, ""
            other, failures = find(env, others)
            return other, "; ".join(filter(None, (f"{engine}: {failure}", failures)))

        yield found


# Why a command failed, None if it did not, and the lines that it printed.
Verdict = tuple[str | None, list[str]]


def trial(sandbox: Sandbox, command: str, env: Mapping[str, str], tree: Path) -> Verdict:
    """Run a short `command` in `tree` as its work tree."""
    with _trying(sandbox, command, env, tree) as verdict:
        return verdict()


@contextmanager
def _trying(
    sandbox: Sandbox, command: str, env: Mapping[str, str], tree: Path
) -> Iterator[Callable[[], Verdict]]:
    """Start `command` like `trial`, and yield a function that waits for its verdict."""
    with tempfile.TemporaryDirectory(prefix="harness-") as temporary, ExitStack() as started:
        try:
            grants = sandbox.grants(tree, Path(temporary), env, command)
            argv = engines.command(sandbox.engine, command, grants, env, closed=False)
            asking = child.asking(argv, env=env, cwd=tree, seconds=TRIAL_SECONDS)
            answer = started.enter_context(asking)
        except (EnvSetupError, OSError) as error:
            failed = _why(error), list[str]()
            yield lambda: failed
            return

        def verdict() -> Verdict:
            try:
                done = answer()
            except OSError as error:
                return _why(error), []
            printed = done.output.decode("utf-8", "replace").splitlines()
            words = done.complaint.decode("utf-8", "replace").strip().splitlines()
            return ((words[-1] if words else f"exit {done.code}") if done.code else None), printed

        yield verdict


def _why(error: EnvSetupError | OSError) -> str:
    return f"{error.filename} is not on the PATH" if isinstance(error, FileNotFoundError) else str(error)


class Project(NamedTuple):
    """The user's checkout at `top`, its git directory, and the paths that git `ignored` there when asked."""

    top: Path
    git: Path
    ignored: tuple[str, ...]


def of_run(
    engine: Engine,
    env: Mapping[str, str],
    places: Path,
    data: Path,
    project: Project,
    credentials: Collection[str],
    *,
    more: tuple[str, ...] = (),
    kept: tuple[str, ...] = (),
    network: Network = "open",
) -> Sandbox:
    """Return the sandbox of a run whose work trees are below `places`.

    `data` is the data directory of harness. `credentials` are those of agents, below the home directory.
    `more` may be written, too, even where it is secret otherwise. `kept` stay in the environment.
    """
    settings = [path for path in (project.git / "config",) if _has_password(path)]
    secret = [*_secrets(env, credentials), places, project.top / LOGIN, *settings]
    secret += [data / name for name in ("hidden", ".auth.json", ".auth-cache.json")]
    return Sandbox(
        engine,
        str(places),
        (*_caches(env), *(os.path.realpath(path) for path in more)),
        (*map(str, secret), *_secret_of(project)),
        tuple(map(str, (_home(env), data, project.top, project.git))),
        kept,
        network,
        checkout=(str(project.top), str(project.git)),
    )


def of_session(
    engine: Engine,
    env: Mapping[str, str],
    writable: Collection[Path],
    data: Path,
    git: Path | None,
    credentials: Collection[str],
) -> Sandbox:
    """Return the sandbox of a session in the user's own checkout, which is among the `writable` paths.

    `git` is the common git directory.
    """
    others = [path for path in (data / "worktrees",) if path not in writable]
    secret = [*_secrets(env, credentials), data / "hidden", *others, *(path / LOGIN for path in writable)]
    places = [str(path) for path in (*writable, *([git] if git else []))]
    written = (*_caches(env), *map(os.path.realpath, places))
    shown = (str(_home(env)), str(data))
    protected = tuple(_protected(git)) if git else ()
    return Sandbox(engine, "", written, tuple(map(str, secret)), shown, protected=protected)


def _protected(git: Path) -> list[str]:
    """Return what git runs by itself: the user's next command would start it outside of the sandbox."""
    return [str(git / name) for name in ("hooks", "config")]


def _secrets(env: Mapping[str, str], credentials: Collection[str]) -> list[Path]:
    """Return what no command may read below the home directory, `credentials` among it."""
    clouds = (path for cloud in CLOUDS.values() for path in cloud.paths)
    return [_home(env) / name for name in (*SECRETS, *SOCKETS_AT_HOME, *clouds, *credentials)]


def _caches(env: Mapping[str, str]) -> list[str]:
    paths = (*_made(_home(env), env), *(env.get(name, "") for name in CACHES_NAMED))
    return [os.path.realpath(path) for path in paths if path.startswith("/")]


def _made(home: Path, env: Mapping[str, str]) -> Iterator[str]:
    """Yield the caches below `home`, made for installed programs: only an existing one can be given."""
    for name, program in CACHES.items():
        cache = home / name
        if not cache.exists() and environment.find(program, env.get("PATH", os.defpath)):
            try:
                cache.mkdir(parents=True)
            except OSError:
                continue
        yield str(cache)


def _has_password(settings: Path) -> bool:
    try:
        return _PASSWORD.search(settings.read_bytes()) is not None
    except OSError:
        return False


def _secret_of(project: Project) -> list[str]:
    """Return what git ignores in the user's checkout, but for what checks need."""
    names = [name for name in project.ignored if not any(map(SHOWN.fullmatch, Path(name).parts))]
    if sum(map(len, names)) > MOST_IGNORED:
        names = sorted({Path(name).parts[0] for name in names})
    return [str(project.top / name) for name in names]


def noted(sandbox: Sandbox) -> dict[str, str]:
    """Return the variable with which commands start in `sandbox`."""
    return {VARIABLE: json.dumps(sandbox)}


def of(env: Mapping[str, str]) -> Sandbox | None:
    """Return the sandbox that `env` names; None if it names none."""
    text = env.get(VARIABLE)
    if not text:
        return None
    values: list[Any] = json.loads(text)
    return Sandbox._make(tuple(each) if isinstance(each, list) else each for each in values)


def placed(env: Mapping[str, str], cwd: Path) -> tuple[Sandbox, Path] | None:
    """Return the sandbox in which a command of a run starts in `cwd`, and the tree that it may write.

    None: it starts outside, as `env` names no sandbox, or `cwd` belongs to nothing that is confined.
    """
    box = of(env)
    if box is None:
        return None
    if tree := box.tree(cwd):
        return box, tree
    if box.checkout and is_within(os.path.realpath(cwd), os.path.realpath(box.checkout[0])):
        return box.in_checkout(), Path(box.checkout[0])
    return None


def for_check(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variable of `env` for a check, whose network may be closed."""
    sandbox = of(env)
    return noted(sandbox._replace(is_check=True)) if sandbox else {}


def widened(env: Mapping[str, str], paths: Iterable[str], *, clouds: Iterable[str] = ()) -> dict[str, str]:
    """Return the variable of `env` for a command that may also write `paths`, which begin at the home.

    It may read those of them that are secret otherwise, and has the credentials of `clouds`.
    """
    sandbox = of(env)
    if sandbox is None:
        return {}
    home = _home(env)
    own = [CLOUDS[name] for name in clouds]
    opened = [str(home / path) for path in (*paths, *(path for cloud in own for path in cloud.paths))]
    secret = (path for path in sandbox.secret if not any(is_within(path, each) for each in opened))
    return noted(
        sandbox._replace(
            writable=(*sandbox.writable, *opened),
            secret=tuple(secret),
            kept=(*sandbox.kept, *(name for cloud in own for name in cloud.variables)),
        )
    )


def is_within(path: str, top: str) -> bool:
    """Return whether `path` is `top` or below it."""
    return path == top or path.startswith(f"{top.rstrip('/')}/")


@contextmanager
def entered(command: str, env: Mapping[str, str], cwd: Path) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Yield the arguments and environment that run `sh -c command`, in the sandbox of `env` if it has one."""
    inside = {name: value for name, value in env.items() if name != VARIABLE}
    place = placed(env, cwd) if VARIABLE in env else None
    if place is None:
        yield ["sh", "-c", command], inside
        return
    with tempfile.TemporaryDirectory(prefix="harness-", ignore_cleanup_errors=True) as temporary:
        yield confined(place[0], command, inside, place[1], Path(temporary))


def confined(
    sandbox: Sandbox, command: str, env: Mapping[str, str], tree: Path, temporary: Path
) -> tuple[list[str], dict[str, str]]:
    """Return the arguments and environment that run `sh -c command` in `sandbox`, which may write `tree`.

    `temporary` is the directory for its temporary files.
    """
    removed = sandbox.removed(env)
    inside = {name: value for name, value in env.items() if name not in removed}
    inside |= {**_unsigned(inside), INSIDE: sandbox.engine}
    closed = sandbox.is_check and sandbox.network_of_checks != "open"
    grants = sandbox.grants(tree, temporary, inside, command)
    inside["TMPDIR"] = engines.temporary(sandbox.engine, str(temporary))
    return engines.command(sandbox.engine, command, grants, inside, closed=closed), inside


def _unsigned(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that let git sign nothing: the keys for that are secret."""
    count = env.get("GIT_CONFIG_COUNT", "0")
    if not count.isdigit():
        return {}
    settings = dict.fromkeys(("commit.gpgsign", "tag.gpgsign"), "false")
    found = {"GIT_CONFIG_COUNT": str(int(count) + len(settings))}
    for number, (name, value) in enumerate(settings.items(), int(count)):
        found |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return found


def _home(env: Mapping[str, str]) -> Path:
    return Path(os.path.realpath(env.get("HOME") or Path.home()))
