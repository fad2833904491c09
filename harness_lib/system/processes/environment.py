"""Handle environments (our PATH, secrets, the environment of a check) and read command lines.

With `.`, an empty or another relative entry in PATH, harness would run the project's own `git` and `python3`.
`/proc/PID/environ` shows the memory that the kernel filled at the start, even if a variable has changed
since; Python's copies of the variables are elsewhere, and stay.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Mapping, MutableMapping, Sequence
from pathlib import Path

from harness_lib import sha256, typed

Env = Mapping[str, str]
# What is below ends with a login, and a sandbox has its own: fnm names Node.js by a link there.
_FLEETING = ("/run/user/", "/tmp/")  # noqa: S108 (nothing is made there)
# In the environment of a check: the task that it is for.
CHECKED = "HARNESS_CHECKED_TASK"
_STAT, _MEMORY = Path("/proc/self/stat"), Path("/proc/self/mem")
# Fields of /proc/PID/stat behind the name, counted from 0: proc(5) numbers them 3, 50 and 51.
_ENV_START, _ENV_END = 47, 48
# Options for a test runner or an interpreter that are in no file and on no command line.
_ORDERS_NAMED = """
    PYTEST_ADDOPTS PYTEST_PLUGINS PYTHONOPTIMIZE PYTHONSTARTUP PYTHONINSPECT TOX_OVERRIDE NODE_OPTIONS
    npm_config_script_shell npm_config_node_options BUN_OPTIONS MAKEFLAGS GNUMAKEFLAGS MFLAGS MAKEFILES
    BASH_ENV ENV RUBYOPT PERL5OPT MAVEN_ARGS DOTNET_STARTUP_HOOKS
"""
_ORDERS = frozenset(_ORDERS_NAMED.split())
_ORDERS_LIKE = r"CARGO_TARGET_\w+_RUNNER|BASH_FUNC_.*"
# Search paths: entries in the work tree are under control of the attempt.
_PLACES = frozenset(
    ("PATH", "PYTHONPATH", "NODE_PATH", "RUBYLIB", "PERL5LIB", "LD_PRELOAD", "LD_LIBRARY_PATH")
)
# Where npm and Composer put programs.
_INSTALLED = (("node_modules", ".bin"), ("vendor", "bin"))
# Of these variables only such words are removed; the rest is memory, modules and the like.
_FLAGS = {
    "GOFLAGS": r"-{1,2}(run|skip|exec|overlay|toolexec|vet|list)\b",
    **dict.fromkeys(
        ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "MAVEN_OPTS", "GRADLE_OPTS"),
        r"-(D(skip|maven\.test|test)|javaagent)",
    ),
}


def absolute(path: str) -> str:
    """Return `path` (as in PATH) without relative entries; the system's default if nothing is left."""
    return os.pathsep.join(filter(os.path.isabs, path.split(os.pathsep))) or os.defpath.lstrip(os.pathsep)


def find(program: str, path: str | None = None) -> str | None:
    """Return the path of `program` on `path` (default: PATH); None if it is not there."""
    import shutil  # noqa: PLC0415 (every verb loads this file, and few look for a program)

    return shutil.which(program, path=path)


def settle_path(env: MutableMapping[str, str]) -> None:
    """Let the PATH in `env` lead where it leads now: no relative entries, and fleeting links are followed."""
    if "PATH" in env:
        entries = absolute(env["PATH"]).split(os.pathsep)
        lasting = (os.path.realpath(each) if each.startswith(_FLEETING) else each for each in entries)
        env["PATH"] = os.pathsep.join(lasting)


def blank(names: Collection[str]) -> bool:
    """Overwrite the values of the variables `names` in /proc; return whether the system allows it."""
    try:
        fields = _STAT.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        at, end = int(fields[_ENV_START]), int(fields[_ENV_END])
        with _MEMORY.open("r+b", buffering=0) as memory:
            memory.seek(at)
            for entry in memory.read(end - at).split(b"\0"):
                name, _, value = entry.partition(b"=")
                if os.fsdecode(name) in names:
                    memory.seek(at + len(name) + 1)
                    memory.write(bytes(len(value)))
                at += len(entry) + 1
    except OSError:
        return False
    return True


def cleaned(env: Env, top: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return `env` for a check in the work tree `top`, and the names of removed or shortened variables."""
    clean = {}
    for name, value in env.items():
        if name in _ORDERS or re.fullmatch(_ORDERS_LIKE, name):
            continue
        clean[name] = _value(name, value, top)
    changed = (name for name in env if name not in clean or clean[name] != env[name])
    return clean, tuple(sorted(changed))


def with_paths(env: Env, first: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return `env`, in whose search paths (variable → paths) and options those of `first` come first.

    A directory has one path: that of `first`.
    """
    added = {}
    for name, words in first.items():
        between = " " if name.endswith("_OPTS") else os.pathsep
        before = "" if name.endswith("_DIR") else env.get(name, "")
        own = [before] if between == " " else before.split(between)
        added[name] = between.join(filter(None, dict.fromkeys((*words, *own))))
    return {**env, **added}


def moved(env: Mapping[str, str], top: Path, there: Path) -> dict[str, str]:
    """Return `env`, whose PATH names what the work tree `there` has, and not what the one at `top` has.

    What a package manager has installed stays where it is.
    """
    entries = env.get("PATH", os.defpath).split(os.pathsep)
    own = {
        entry: str(there / Path(entry).relative_to(top))
        for entry in entries
        if Path(entry).is_relative_to(top) and not _is_installed("PATH", entry)
    }
    return {**env, "PATH": os.pathsep.join(own.get(entry, entry) for entry in entries)} if own else {**env}


def _value(name: str, value: str, top: Path) -> str:
    turning = _FLAGS.get(name)
    if turning is not None:
        words = value.split()
        kept = [word for word in words if not re.match(turning, word)]
        return value if len(kept) == len(words) else " ".join(kept)
    if name not in _PLACES or not value:
        return value
    entries = value.split(os.pathsep)
    return os.pathsep.join(
        entry for entry in entries if not _is_inside(entry, top) or _is_installed(name, entry)
    )


def _is_inside(entry: str, top: Path) -> bool:
    """Return whether `entry` is in the work tree, or relative."""
    if not entry.startswith("/"):
        return True
    real = Path(os.path.realpath(entry))
    return real == top or top in real.parents


def _is_installed(name: str, entry: str) -> bool:
    """Return whether a package manager installed programs there: checks need these."""
    place = Path(entry)
    if name != "PATH" or not place.is_absolute():
        return False
    # direnv installs for a project below `.direnv`.
    is_known = place.parts[-2:] in _INSTALLED or ".direnv" in place.parts
    return is_known or (place.parent / "pyvenv.cfg").is_file()


_EXPANSIONS = frozenset("$`\n")
_UNCERTAIN = frozenset("~*?[]{}!#")
_ASSIGNMENT = r"([A-Za-z_][A-Za-z0-9_]*)="
_KEYWORDS = "if then else elif fi for in do done while until case esac function select time { } ! [["
_BUILTINS = """
    . : [ alias bg break builtin cd command continue declare echo eval exec exit export false fc fg getopts
    hash jobs kill let local popd printf pushd pwd read readonly return set shift shopt source test times trap
    true type typeset ulimit umask unalias unset wait
"""
LARGEST_READ = 1_000_000
_SHELL_WORDS = frozenset(f"{_KEYWORDS} {_BUILTINS}".split())


def first_word(command: str) -> str | None:
    """Return the program that the simple command `command` starts, after leading `NAME=value`.

    None if reading does not tell: operators, substitutions, unclosed quotes, a keyword or builtin of the
    shell, a pattern, or an assignment to PATH.
    """
    text = command.strip()
    (words, end), *more = typed.simple_commands(text)
    if _EXPANSIONS & set(text) or end or more:
        return None
    for word in words:
        assigned = re.match(_ASSIGNMENT, word)
        if not assigned:
            return None if not word or word in _SHELL_WORDS or _UNCERTAIN & set(word) else word
        if assigned[1] == "PATH":
            return None
    return None


def missing_command(command: str, *, cwd: Path, env: Env) -> str | None:
    """Return the first word of `command` if no such program exists for a shell in `cwd`, else None."""
    word = first_word(command)
    if word is None:
        return None
    if "/" in word:
        return None if (cwd / word).exists() else word
    return None if _find_from(word, cwd, env) else word


def program(word: str, *, cwd: Path, env: Env) -> str | None:
    """Return the path of the file that a shell in `cwd` starts for `word`; None if there is none."""
    return None if word in _SHELL_WORDS else _find_from(str(cwd / word) if "/" in word else word, cwd, env)


def program_identity(word: str, *, cwd: Path, env: Env) -> str:
    """Return `FILE#CONTENT`: the file that a shell in `cwd` starts for `word`, and a hash of its content.

    "" if there is none: a word of the shell itself, or a program that is not installed.
    """
    found = None if word in _SHELL_WORDS else _find_from(word, cwd, env)
    if found is None:
        return ""
    place = Path(os.path.realpath(found))
    try:
        size = place.stat().st_size
        # Large programs are not read at each claim; another one hardly has the same size.
        content = sha256.digest(place.read_bytes()) if size <= LARGEST_READ else ""
    except OSError:
        return str(place)
    return f"{place}#{content[:16] or size}"


def _find_from(word: str, cwd: Path, env: Env) -> str | None:
    # An empty or relative entry of PATH counts from the directory of the command, not from ours.
    entries = (str(cwd / entry) for entry in env.get("PATH", os.defpath).split(os.pathsep))
    return find(word, os.pathsep.join(entries))


def columns(otherwise: int) -> int:
    """Return how many characters a line may have: those of COLUMNS or the terminal, or `otherwise`."""
    said = os.environ.get("COLUMNS", "")
    try:
        return (
            int(said) if said.isdecimal() else os.get_terminal_size(sys.stdout.fileno()).columns or otherwise
        )
    except (OSError, ValueError):
        # A pipe, a file, or a replaced stdout.
        return otherwise
