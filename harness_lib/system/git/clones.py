"""Give each worker of a run a repository of its own, and read that repository as data only.

Two git directories belong to such a work tree. `.git` in it is a clone that borrows the project's objects, as
`git clone --shared` makes one: the agent may change its HEAD, refs, index, settings and hooks. The other is
the part of a linked work tree in the project's git directory; `NAME.git` beside the work tree points there.
Every git process of harness works with that one, so it never reads a setting, an attribute, a filter or a
hook of the clone: the files of a repository that an agent may change are read here as data. Its HEAD keeps
the commit that the worker began with from `git gc`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from harness_lib import sha256
from harness_lib.system import fs
from harness_lib.system.git import checkout, trees, worktrees
from harness_lib.system.git.calls import GitError, decode, encode
from harness_lib.system.git.repository import OID, Git
from harness_lib.system.place import find_root, own_files

LARGE = "lfs/objects"
MODULES = "modules"
# The refs that every worker can read.
READABLE = ("refs/harness/rescue", "refs/heads", "refs/notes", "refs/remotes", "refs/replace", "refs/tags")
# Files of the common git directory, beside settings and refs, that are copied if they exist.
ALSO = ("info/attributes", "info/exclude", "info/grafts", "shallow")
# The user's settings that the clone gets: identity, conversion and comparison of files, remotes. None runs a
# program at other times than git's own conversion of a file.
_GIVEN = (
    r"(?s)(user|author|committer)\.(name|email)"
    r"|core\.(autocrlf|eol|filemode|symlinks|ignorecase|precomposeunicode|sparsecheckout(cone)?"
    r"|attributesfile|whitespace|checkstat|trustctime|longpaths|protecthfs|protectntfs)"
    r"|extensions\.(objectformat|partialclone)|index\.(sparse|version)|init\.defaultbranch"
    r"|filter\..*\.(clean|smudge|process|required)|(diff|merge)\..*|lfs\.(fetchexclude|fetchinclude)"
    r"|branch\..*\.(remote|merge|rebase)|(pull|rebase|push)\.[^.]*"
    r"|remote\..*\.(url|pushurl|fetch|tagopt|promisor|partialclonefilter)"
)
# Settings that decide whether a file differs from its blob.
_CONVERTS = r"(?s)core\..*|extensions\.objectformat|filter\..*"
UNBORN = "ref: refs/heads/unborn"
_ADDRESS = r"(?s)remote\..*\.(push)?url"
# Scheme and user.
_LOGIN = r"(?i)^([a-z0-9+.-]+://)([^/@:]*)(?::[^/@]*)?@"
_PART = 1024 * 1024
# The most that is read of a file with one ref in it.
_LIMIT = 4096
_REF = r"refs/[^\s~^:?*\[\\]+"

# As `Git.settings` returns them.
Settings = Sequence[tuple[str, str]]


def as_data(git: Git, place: Path) -> Git | None:
    """Return the repository that an agent has at `place` in its work tree; None if none can be read.

    Its commits, refs and index are copied or borrowed into a git directory of harness, its settings are not.
    """
    found = find_root.git_dir(str(place))
    if found is None or place.is_symlink() or not Path(found, "HEAD").is_file():
        return None
    own, clone = Path(found), git.git_dir / worktrees.NESTED / sha256.digest(os.fsencode(place))[:16]
    discard(clone)
    _skeleton(clone, own / "objects")
    for name in ("index", "shallow"):
        _copy(own / name, clone / name)
    (clone / "packed-refs").write_bytes(
        b"".join(os.fsencode(f"{oid} {name}\n") for name, oid in sorted(_refs(own).items()))
    )
    (clone / "config").write_bytes(
        _settings(git, git.settings(), _CONVERTS) + _setting("core.commitGraph", "false")
    )
    (clone / "HEAD").write_text(f"{head_of(own) or UNBORN}\n", "ascii")
    return Git(place, clone, clone)


def renew(git: Git) -> Settings:
    """Give the work tree a new clone at its commit, and remove the old one; return git's settings here."""
    old, clone = git.top / ".git", git.top.with_name(f"{git.top.name}.new")
    discard(clone)
    settings = make(git, clone, str(git.head()))
    if (keys := git.common_dir / worktrees.KEYS).is_dir():
        # A copy: `git-crypt lock` removes the keys that it finds.
        shutil.copytree(keys, clone / worktrees.KEYS)
    _copy(git.git_dir / "info" / "sparse-checkout", clone / "info" / "sparse-checkout")
    for index in (git.git_dir / "index", *fs.matching(git.git_dir, "sharedindex.*")):
        _copy(index, clone / index.name)
    if not old.is_symlink() and (old / MODULES).is_dir():
        # So that unchanged submodules are not fetched again.
        (old / MODULES).rename(clone / MODULES)
    discard(old)
    clone.rename(old)
    _note(git, _present(old))
    return settings


def make(source: Git, clone: Path, commit: str) -> Settings:
    """Make the git directory `clone`, with its HEAD at `commit`, which borrows the objects of `source`.

    Return the settings of `source`, of which it has some.
    """
    settings = source.settings()
    _skeleton(clone, source.common_dir / "objects")
    for name in ALSO:
        _copy(source.common_dir / name, clone / name)
    refs = source.run("for-each-ref", "--format=%(objectname) %(refname)", *READABLE).stdout
    (clone / "packed-refs").write_bytes(refs)
    (clone / "config").write_bytes(_settings(source, settings))
    (clone / "HEAD").write_text(f"{commit}\n", "ascii")
    return settings


def _skeleton(clone: Path, objects: Path) -> None:
    for directory in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
        (clone / directory).mkdir(parents=True)
    borrowed = checkout.quoted(objects) if "\n" in str(objects) else os.fsencode(objects)
    (clone / "objects" / "info" / "alternates").write_bytes(borrowed + b"\n")


def discard(path: Path) -> None:
    """Remove what is at `path`, of any kind; the target of a link is kept."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _copy(source: Path, to: Path) -> None:
    if source.is_file():
        shutil.copy2(source, to)


def _settings(git: Git, settings: Settings, which: str = _GIVEN) -> bytes:
    """Return the configuration of a clone: its own settings, and those of `settings` that it gets."""
    given = [(key, _address(git, key, value)) for key, value in settings if re.fullmatch(which, key)]
    version = "1" if any(key.startswith("extensions.") for key, _ in given) else "0"
    own = {"repositoryformatversion": version, "bare": "false", "logallrefupdates": "true"}
    core = [(f"core.{key}", value) for key, value in own.items()]
    return b"".join(_setting(key, value) for key, value in (*core, *given))


def _address(git: Git, key: str, value: str) -> str:
    """Return `value` without user name and password, if it is the address of a remote."""
    if not re.fullmatch(_ADDRESS, key):
        return value
    if (git.common_dir.parent / value).exists():
        # Relative to the project.
        return os.path.normpath(git.common_dir.parent / value)
    # In `ssh://git@host/` the name is the account; in https it may be a token.
    return re.sub(_LOGIN, lambda found: found[1] + (f"{found[2]}@" if "ssh" in found[1] else ""), value)


def _setting(key: str, value: str) -> bytes:
    section, _, rest = key.partition(".")
    below, _, name = rest.rpartition(".")
    head = f'[{section} "{_escaped(below)}"]' if below else f"[{section}]"
    text = _escaped(value).replace("\n", "\\n").replace("\t", "\\t")
    return os.fsencode(f'{head}\n\t{name} = "{text}"\n')


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def take_in(git: Git) -> dict[str, str]:
    """Take in the new commits of the clone: HEAD and index of harness's git directory follow its HEAD.

    Return name → commit of what was made there beside HEAD: branches, tags, stashes. The commits are copied
    into the project's objects and checked as by a fetch, never borrowed.
    Raises GitError if git rejects one; then nothing is taken in.
    """
    clone = git.top / ".git"
    if not worktrees.has_clone(git) or clone.is_symlink() or not clone.is_dir():
        return {}
    before, now = _noted(git), _present(clone)
    head, merging = now.head if now.head != before.head else None, now.merging
    refs = _changed_refs(clone, packed=now.packed != before.packed)
    new = _missing(git, [*([head] if head else []), *merging, *refs.values()])
    if new:
        _copy_objects(git, clone, new)
        _copy_large_files(clone / LARGE, git.common_dir / LARGE)
    if head is not None and head != git.head():
        git.run("reset", "--quiet", "--mixed", head)
    if merging and merging != before.merging:
        fs.write(git.git_dir / "MERGE_HEAD", "".join(f"{oid}\n" for oid in merging).encode(), durable=False)
    if now.indexed != before.indexed:
        _take_staged(git, clone)
    if now != before:
        _note(git, now)
    return {name: oid for name, oid in refs.items() if oid in new and oid not in (head, *merging)}


def _missing(git: Git, oids: Iterable[str]) -> list[str]:
    """Return the objects that the project lacks: they were made in the clone."""
    asked = list(dict.fromkeys(oids))
    if not asked:
        return []
    answers = git.run("cat-file", "--batch-check", stdin="\n".join(asked).encode()).stdout
    return [oid for oid, line in zip(asked, answers.splitlines(), strict=True) if line.endswith(b" missing")]


def _copy_objects(git: Git, clone: Path, tips: Sequence[str]) -> None:
    """Copy the objects of `tips` that the project lacks from the clone."""
    known = dict.fromkeys([git.head(), *(oid for _, oid in git.refs("refs/heads/", "refs/remotes/"))])
    wanted = [*tips, *(f"^{oid}" for oid in known if oid)]
    source = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": os.fsdecode(checkout.quoted(clone / "objects"))}
    # Files that describe objects may be forged.
    plain = ("-c", "core.commitGraph=false", "-c", "core.multiPackIndex=false")
    pack = ("pack-objects", "--revs", "--stdout", "--quiet")
    packed = git.run(*plain, *pack, env=source, stdin="\n".join(wanted).encode()).stdout
    unpack = ("unpack-objects", "-q", "--strict")
    git.run(*unpack, stdin=packed)
    if lost := _missing(git, tips):
        raise GitError(unpack, 1, f"{', '.join(lost)} is not what it is called".encode())


def _copy_large_files(source: Path, to: Path) -> None:
    """Copy the Git LFS contents of the clone, each if it has the hash in its name."""
    # Only here, as it loads OpenSSL.
    import hashlib  # noqa: PLC0415

    for path in fs.below(source, "*"):
        own = to / path.relative_to(source)
        if own.exists() or path.is_symlink() or not path.is_file():
            continue
        fs.make_directory(own.parent)
        with path.open("rb") as stream, tempfile.NamedTemporaryFile(dir=own.parent) as copy:
            digest = hashlib.sha256()
            while part := stream.read(_PART):
                digest.update(part)
                copy.write(part)
            copy.flush()
            # As git-lfs has made it; what tempfile makes only its owner may read.
            os.fchmod(copy.fileno(), path.stat().st_mode & 0o664)
            if digest.hexdigest() == path.name:
                # Another worker, or git-lfs, may have stored it meanwhile.
                with suppress(FileExistsError):
                    os.link(copy.name, own)


def _take_staged(git: Git, clone: Path) -> None:
    """Add to the index what was added in the clone, ignored files too, and its unresolved conflicts.

    A submodule that was removed in the clone, as a repository too, is removed: its place may have files now.
    """
    index = {"GIT_INDEX_FILE": str(clone / "index")}
    listing = git.run("ls-files", "--stage", "-z", env=index, check=False)
    if listing.returncode:
        # Whatever became of it, the files themselves are checked.
        return
    ours = {path: kind for kind, _, _, path in _records(git.run("ls-files", "--stage", "-z").stdout)}
    records = _records(listing.stdout)
    theirs = {path for *_, path in records}
    parted = [
        path
        for path, kind in ours.items()
        if kind == trees.GITLINK and path not in theirs and not _may_be_submodule(git.top / path)
    ]
    if parted:
        git.run("update-index", "--force-remove", "-z", "--stdin", stdin=encode(parted))
    added = [
        path
        for _, _, stage, path in records
        if stage == "0" and path not in ours and checkout.mode(git.top, path)
    ]
    if added:
        git.run("update-index", "--add", "--replace", "-z", "--stdin", stdin=encode(added))
    sides = [record for record in records if record[2] != "0"]
    if sides:
        gone = [f"0 {'0' * len(sides[0][1])}\t{path}" for path in dict.fromkeys(path for *_, path in sides)]
        now = [f"{kind} {oid} {stage}\t{path}" for kind, oid, stage, path in sides]
        git.run("update-index", "-z", "--index-info", stdin=encode([*gone, *now]))


def _may_be_submodule(place: Path) -> bool:
    """Return whether a repository is at `place`, or an empty directory, as of one that is not checked out."""
    try:
        names = [each.name for each in place.iterdir()]
    except OSError:
        return False
    return not names or ".git" in names


def _records(listing: bytes) -> list[tuple[str, str, str, str]]:
    """Return (mode, object, stage, path) of each line of `ls-files --stage`."""
    halves = (record.partition("\t") for record in decode(listing))
    return [(kind, oid, stage, path) for facts, _, path in halves for kind, oid, stage in [facts.split(" ")]]


class _Seen(NamedTuple):
    """The state of a clone: its commits, and when its index and its packed refs were written."""

    head: str | None = None
    merging: tuple[str, ...] = ()
    indexed: int | None = None
    packed: int | None = None


def _present(clone: Path) -> _Seen:
    """Return the state of the clone as it is now."""
    merging = tuple(oid for oid in _content(clone / "MERGE_HEAD").split() if OID.fullmatch(oid))
    return _Seen(head_of(clone), merging, _written(clone / "index"), _written(clone / "packed-refs"))


def _note(git: Git, state: _Seen) -> None:
    """Note the known state of the clone, beside the work tree: nothing is taken in twice."""
    fs.write(git.top.with_name(f"{git.top.name}.seen"), json.dumps(state).encode(), durable=False)


def _noted(git: Git) -> _Seen:
    """Return the state of the clone that was noted last; an empty one if none was."""
    try:
        head, merging, indexed, packed = json.loads(git.top.with_name(f"{git.top.name}.seen").read_bytes())
    except (OSError, ValueError):
        return _Seen()
    return _Seen(head, tuple(merging), indexed, packed)


def head_of(clone: Path) -> str | None:
    """Return the commit of HEAD of the clone; None if its files do not tell."""
    text = _content(clone / "HEAD").rstrip()
    name = text.removeprefix("ref: ")
    if name != text:
        is_branch = name.startswith("refs/heads/") and ".." not in name.split("/")
        text = (_content(clone / name) or _packed(clone).get(name, "")).rstrip() if is_branch else ""
    return text if OID.fullmatch(text) else None


def _refs(clone: Path) -> dict[str, str]:
    """Return name → object of the refs of the clone that git would accept."""
    found = _packed(clone) | _loose(clone)
    return {
        name: oid
        for name, oid in found.items()
        if OID.fullmatch(oid) and re.fullmatch(_REF, name) and ".." not in name
    }


def _changed_refs(clone: Path, *, packed: bool) -> dict[str, str]:
    """Return name → object of the loose refs, the stashes and, if `packed` has changed, of all others."""
    found = _packed(clone) if packed else {}
    found |= _loose(clone)
    for number, line in enumerate(reversed(_content(clone / "logs" / "refs" / "stash", -1).splitlines())):
        found[f"refs/stash-{number}"] = line.split(" ")[1] if " " in line else ""
    names = {oid: name for name, oid in reversed(found.items()) if OID.fullmatch(oid)}
    return {name: oid for oid, name in names.items()}


def _content(path: Path, limit: int = _LIMIT) -> str:
    """Return the text of the file at `path`, at most `limit` bytes of it; "" if it cannot be read."""
    try:
        return os.fsdecode(own_files.read(path, limit))
    except OSError:
        return ""


def _packed(clone: Path) -> dict[str, str]:
    lines = (line.partition(" ") for line in _content(clone / "packed-refs", -1).splitlines())
    return {name: oid for oid, _, name in lines}


def _loose(clone: Path) -> dict[str, str]:
    paths = fs.below(clone / "refs", "*")
    return {str(path.relative_to(clone)): _content(path).strip() for path in paths}


def _written(path: Path) -> int | None:
    """Return when a file was written; None if there is none."""
    try:
        info = path.lstat()
    except OSError:
        return None
    return info.st_mtime_ns if stat.S_ISREG(info.st_mode) else None
