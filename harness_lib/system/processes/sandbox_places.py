"""Find the caches, secrets and sockets of a user's machine; `sandbox.py` decides who gets which."""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from harness_lib.agents import registry
from harness_lib.system.processes import engines, environment
from harness_lib.text import Strings

# Below the home directory, each with the program that makes it; ccache goes by whether its own is there.
CACHES = {
    ".cache": "sh",
    ".ccache": "",
    ".npm": "npm",
    ".local/share/pnpm/store": "pnpm",
    ".yarn/berry": "yarn",
    ".bun/install/cache": "bun",
    ".cargo/registry": "cargo",
    ".cargo/git": "cargo",
    # Beside these are settings and scripts, which each later build of the user would heed.
    **dict.fromkeys((".gradle/caches", ".gradle/daemon", ".gradle/jdks", ".gradle/native"), "gradle"),
    **dict.fromkeys((".gradle/notifications", ".gradle/workers", ".gradle/wrapper"), "gradle"),
    **dict.fromkeys((".m2/repository", ".m2/wrapper"), "mvn"),
    ".ivy2": "sbt",
    ".nuget/packages": "dotnet",
    ".pub-cache": "dart",
    "go/pkg": "go",
}
# What lies elsewhere if a variable says so.
_MOVED = {".cargo": "CARGO_HOME", ".gradle": "GRADLE_USER_HOME", "go": "GOPATH"}
# Variables that say where a cache is.
_NAMED = """
    XDG_CACHE_HOME PIP_CACHE_DIR UV_CACHE_DIR npm_config_cache NPM_CONFIG_CACHE GOCACHE GOMODCACHE
    YARN_CACHE_FOLDER PLAYWRIGHT_BROWSERS_PATH CCACHE_DIR SCCACHE_DIR
"""
CACHES_NAMED = tuple(_NAMED.split())
_SECRETS = """
    .ssh .gnupg .kube .netrc .pgpass .git-credentials .pypirc .docker/config.json .config/containers/auth.json
    .password-store .local/share/keyrings .cargo/credentials.toml .cargo/credentials .config/git/credentials
    .config/glab-cli .config/hub .terraform.d/credentials.tfrc.json .gem/credentials .config/helm/registry
    .local/share/gem/credentials .vault-token .pulumi/credentials.json .databrickscfg .s3cfg .config/rclone
    .config/doctl .config/op .config/sops .fly/config.yml .config/netlify .local/share/com.vercel.cli
    .mozilla .config/google-chrome .config/chromium .config/BraveSoftware Library/Keychains
"""
SECRETS = (*_SECRETS.split(), "Library/Application Support/Google/Chrome")
LOGINS = registry.CREDENTIALS
# Sockets, and directories of sockets, through which a program outside could be told to do what the command
# may not; the others are below the home directory.
_SOCKETS = """
    /run/user /run/dbus /run/docker.sock /run/containerd /run/podman /run/screen /run/snapd.socket
    /run/systemd/private /run/libvirt /run/lxd /run/incus /run/crio
"""
_AT_HOME = ".docker/run .docker/desktop .colima .lima .orbstack/run .rd"
SOCKETS, SOCKETS_AT_HOME = tuple(_SOCKETS.split()), tuple(_AT_HOME.split())
# Variables that could push, or lead to a program outside.
_VARIABLES = """
    GITLAB_TOKEN BITBUCKET_TOKEN SSH_AUTH_SOCK SSH_AGENT_PID GIT_ASKPASS SSH_ASKPASS
    DBUS_SESSION_BUS_ADDRESS DBUS_SYSTEM_BUS_ADDRESS TMUX STY NVIM KUBECONFIG VSCODE_IPC_HOOK_CLI
    VSCODE_GIT_IPC_HANDLE VSCODE_GIT_ASKPASS_MAIN VERCEL_TOKEN TWINE_PASSWORD CARGO_REGISTRY_TOKEN
    NETLIFY_AUTH_TOKEN DIGITALOCEAN_ACCESS_TOKEN CLOUDFLARE_API_TOKEN HEROKU_API_KEY FLY_API_TOKEN
    GEM_HOST_API_KEY
"""
CREDENTIALS = frozenset(_VARIABLES.split())


class Cloud(NamedTuple):
    """The credentials of one provider: variables, and paths below the home directory."""

    variables: Strings
    paths: Strings


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
CLOUD_PATHS = tuple(path for cloud in CLOUDS.values() for path in cloud.paths)
# A login of `hs` that is the project's.
LOGIN = Path(".harness", ".auth.json")
# What git ignores and a check needs, beside virtual environments: a copied one points to the original.
SHOWN = r"\.venv|\.direnv|node_modules|__pycache__|\.harness|harness-[^/]*|harness\.toml"
# More ignored paths than these, in characters, are hidden by hiding the directories around them.
MOST_IGNORED = 16_000
# Settings of git with a password or token in them.
_PASSWORD = rb"(?i)://[^/\s@]*:[^/\s@]*@|extraheader"


class Project(NamedTuple):
    """The user's checkout at `top`, its git directory, and the paths that git `ignored` there when asked."""

    top: Path
    git: Path
    ignored: Strings


def run_by_git(git: Path) -> list[str]:
    """Return what git runs by itself: the user's next command would start it outside of the sandbox."""
    return [str(git / name) for name in ("hooks", "config")]


def secrets_of(env: environment.Env) -> list[Path]:
    """Return what no command may read below the home directory."""
    home = home_of(env)
    names = (*SECRETS, *LOGINS, *SOCKETS_AT_HOME, *CLOUD_PATHS)
    return list(dict.fromkeys(path for name in names for path in (home / name, _below_home(name, env))))


def _below_home(name: str, env: environment.Env) -> Path:
    first, _, rest = name.partition("/")
    # The first one of GOPATH is the one that `go` fills.
    place = env.get(_MOVED.get(first, ""), "").partition(os.pathsep)[0]
    return Path(place, rest) if place.startswith("/") else home_of(env) / name


def caches_of(env: environment.Env) -> list[str]:
    """Return the directories that commands may fill for all projects.

    Those of installed programs are made: only an existing one can be given.
    """
    below = {_below_home(name, env): program for name, program in CACHES.items()}
    for cache, program in below.items():
        # What cannot be made or looked at cannot be filled either.
        with suppress(OSError):
            if cache.exists():
                continue
            # A project's own `gradlew` is on no PATH.
            begun = program in {"gradle", "mvn"} and cache.parent.exists()
            if begun or environment.find(program, env.get("PATH", os.defpath)):
                cache.mkdir(parents=True)
    named = (env.get(name, "") for name in CACHES_NAMED)
    return [os.path.realpath(path) for path in (*map(str, below), *named) if path.startswith("/")]


def secrets_in(project: Project) -> list[str]:
    """Return what no command may read of the project: a login, passwords, and what git ignores.

    What checks need of the last is not among it.
    """
    # Ignored as a whole: another `pyvenv.cfg` may be what an agent has committed beside a secret.
    shown = {name for name in project.ignored if os.path.lexists(project.top / name / "pyvenv.cfg")}
    names = [
        name
        for name in project.ignored
        if not any(
            re.fullmatch(SHOWN, at.name) or str(at) in shown for at in (Path(name), *Path(name).parents)
        )
    ]
    if sum(map(len, names)) > MOST_IGNORED:
        names = sorted({Path(name).parts[0] for name in names})
    settings = project.git / "config"
    secret = [str(project.top / name) for name in (str(LOGIN), *names)]
    with suppress(OSError):
        if re.search(_PASSWORD, settings.read_bytes()):
            secret.append(str(settings))
    return secret


def listening_sockets(home: str) -> Iterator[str]:
    """Yield the sockets of programs below `home`, such as editors: a read-only one can be connected to."""
    try:
        lines = Path("/proc/net/unix").read_bytes().splitlines()
    except OSError:
        return
    for line in lines:
        _, _, path = line.partition(os.fsencode(f" {home.rstrip('/')}/"))
        if path:
            yield f"{home.rstrip('/')}/{os.fsdecode(path)}"


def temporary_paths(argv: Sequence[str], env: environment.Env) -> Iterator[str]:
    """Yield the paths below temporary directories that `argv` or a variable names, but no sockets."""
    words, at = [*argv], 0
    # The command of an agent is one that a shell gives to another.
    while words[at : at + 2] == ["sh", "-c"] and len(words) > at + 2:
        text, at = words[at + 2], len(words)
        try:
            words += shlex.split(text)
        except ValueError:
            words += text.split()
    named = {part for text in (*words, *env.values()) for part in (text, *text.split(os.pathsep))}
    for path in named:
        if path.startswith(tuple(f"{place}/" for place in engines.PRIVATE)) and "\0" not in path:
            try:
                mode = os.stat(path).st_mode  # noqa: PTH116 (a text of the user's)
            except OSError:
                continue
            if not stat.S_ISSOCK(mode):
                yield os.path.realpath(path)


def without_signing(env: environment.Env) -> dict[str, str]:
    """Return the variables that let git sign nothing: the keys for that are secret."""
    count = env.get("GIT_CONFIG_COUNT", "0")
    if not count.isdigit():
        return {}
    settings = dict.fromkeys(("commit.gpgsign", "tag.gpgsign"), "false")
    found = {"GIT_CONFIG_COUNT": str(int(count) + len(settings))}
    for number, (name, value) in enumerate(settings.items(), int(count)):
        found |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return found


def home_of(env: environment.Env) -> Path:
    """Return the home directory of a command with `env`."""
    return Path(os.path.realpath(env.get("HOME") or Path.home()))
