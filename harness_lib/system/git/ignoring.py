"""Find what git ignores: by rules that came after a certain moment, as a cache, or not although it should."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from harness_lib.system.git import caches, trees
from harness_lib.system.git.calls import GitError, call, decode, encode
from harness_lib.system.git.repository import Git

RULES = ".gitignore"
# What the tools of a project make that has this file.
PYTHON = ("__pycache__", ".venv")
USUAL = {
    "package.json": ("node_modules",),
    "pyproject.toml": PYTHON,
    "setup.py": PYTHON,
    "requirements.txt": PYTHON,
    caches.CRATE: (caches.BUILT,),
    "build.gradle": (".gradle",),
    "build.gradle.kts": (".gradle",),
}
FILES = (".env", ".DS_Store")


def newly(git: Git, rules_then: str, rules_now: str) -> list[str]:
    """Return the files that are ignored now and would not be under the rules of the tree `rules_then`.

    `rules_now`: the tree of the work tree as git sees it today. What ignores itself (a cache with rules of
    its own inside) counts as ignored, whenever it was made: nobody can tell.
    """
    changed = {path for path in trees.difference(git, rules_then, rules_now) if _is_rules(path)}
    if not changed:
        return []
    files = list(_ignored_files(git))
    if not files:
        return []
    with trees.scratch_directory(git) as place:
        _lay_out(git, place, rules_then, [path for path in files if _is_rules(path) and path not in changed])
        hidden_then = _check(git, place, files)
    return [path for path in files if path not in hidden_then]


def caches_above(git: Git, paths: Iterable[str]) -> list[str]:
    """Return the caches that `paths` lie in, or are, as far as no rule takes them in with a `!`."""
    found = set()
    for path in paths:
        parts = path.split("/")
        called = [n for n, part in enumerate(parts, 1) if part in caches.NAMES or part == caches.BUILT]
        found |= {"/".join(parts[:n]) for n in called}
    names = [f"{path}/" if (git.top / path).is_dir() else path for path in sorted(found)]
    return [path.rstrip("/") for path in sorted(_check(git, git.top, names))] if names else []


def offered(git: Git) -> list[str]:
    """Return the lines that the rules for ignoring lack here, for caches and for `.env`.

    Only what stands at the top of the work tree, or what the tools of such a project make there.
    """
    here = {entry.name for entry in git.top.iterdir()}
    usual = {name for kind in here for name in USUAL.get(kind, ())}
    names = usual.union(here.intersection(caches.NAMES), here.intersection(FILES))
    wanted = [name if name in FILES else f"{name}/" for name in sorted(names)]
    asked = ("check-ignore", "--no-index", "-z", "--stdin")
    # Not by way of `git`, for which caches are ignored already.
    answer = call(asked, git.top, env=git.place(), stdin=encode(wanted)).stdout if wanted else b""
    ignored = set(decode(answer))
    return [line for line in wanted if line not in ignored and not git.is_tracked(Path(line))]


def only_rules(git: Git, tree: str) -> dict[str, trees.Entry]:
    """Return those entries of `tree` that are rules."""
    return rules_in(trees.entries(git, tree))


def rules_in(files: Mapping[str, trees.Entry]) -> dict[str, trees.Entry]:
    """Return those of `files` that are rules."""
    return {path: entry for path, entry in files.items() if _is_rules(path)}


def _is_rules(path: str) -> bool:
    return path.rpartition("/")[2] == RULES


def _ignored_files(git: Git) -> Iterable[str]:
    listing = git.run("ls-files", "--others", "--ignored", "--exclude-standard", "-z").stdout
    return (path for path in decode(listing) if not path.endswith("/"))


def _lay_out(git: Git, place: Path, rules_then: str, present: Collection[str]) -> None:
    """Write the rules of then into `place`, and beside them those that stand in ignored directories."""
    for path, (mode, oid) in only_rules(git, rules_then).items():
        if mode != trees.SYMLINK:
            _write(place / path, git.run("cat-file", "blob", oid).stdout)
    for path in present:
        if (git.top / path).is_file() and not (git.top / path).is_symlink():
            _write(place / path, (git.top / path).read_bytes())


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _check(git: Git, place: Path, files: list[str]) -> set[str]:
    args = (f"--work-tree={place}", "check-ignore", "--no-index", "-z", "--stdin")
    answer = git.run(*args, stdin=encode(files), check=False)
    if answer.returncode not in (0, 1):
        raise GitError(args, answer.returncode, answer.stderr)
    return set(decode(answer.stdout))
