"""The settings files of a host, and the plugins, through which it loads our hooks.

They are found, read, changed and written so that the user never loses a setting.
"""

from __future__ import annotations

import codecs
import difflib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from harness_lib.agents import claude, codex, registry
from harness_lib.agents.adapter import SCOPES, Host, Scope
from harness_lib.core.context import Context
from harness_lib.errors import ConfigError, HarnessError, HeldError, RefusedError
from harness_lib.hookinstall import entries
from harness_lib.system import fs
from harness_lib.text import cut, first, harmless

LARGEST = 4 * 1024 * 1024
KEPT = ".bak-harness"
CORRECT_IT = "Correct it there and type the same again; nothing was written."


class HostFile(NamedTuple):
    """`data` is the content of `path`, None if there is no file."""

    host: Host
    path: Path
    data: bytes | None

    @property
    def text(self) -> str:
        """The content without a byte order mark. Raises ConfigError (not UTF-8)."""
        data = (self.data or b"").removeprefix(codecs.BOM_UTF8)
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise ConfigError(f"{self.path}, line {line}: this is not UTF-8.", CORRECT_IT) from error

    @property
    def backup(self) -> Path:
        """Where the file is kept as it was before harness wrote to it."""
        return self.path.with_name(self.path.name + KEPT)

    def commands(self) -> list[tuple[str, object]]:
        """Return (event, command) of every hook, ours and others'. Raises ConfigError."""
        if not self.text.strip():
            return []
        with _named(self.path):
            if self.host.form == "toml":
                return entries.toml_handlers(self.text)
            return list(entries.handlers(entries.parsed(self.text)))

    def ours(self) -> list[tuple[str, Path]]:
        """Return (event, script) of every hook of harness. Raises ConfigError."""
        pairs = ((event, entries.script_of(command)) for event, command in self.commands())
        return [(event, script) for event, script in pairs if script]

    def installed(self) -> bytes:
        """Return the content with our hooks. Raises ConfigError, RefusedError (the user must edit it)."""
        by_event = entries.by_event(self.host)
        with _named(self.path):
            if self.host.form == "toml":
                return self._encoded(entries.install_toml(self.text, by_event))
            document = entries.parsed(self.text)
            entries.install(document, by_event, self.host.root)
            ours = {**self.host.root, "hooks": {event: [entry] for event, entry in by_event.items()}}
            lines = json.dumps(ours, indent=2, ensure_ascii=False)
            return self._rendered(document, f"Add these entries to it yourself:\n{lines}")

    def uninstalled(self) -> bytes | None:
        """Return the content without our hooks; None if harness has made the file. Raises as `installed`."""
        if not self.ours():
            return self.data
        kept = self.backup.read_bytes() if self.backup.is_file() else None
        if kept is not None and _is_untouched(HostFile(self.host, self.path, kept), self):
            return kept
        with _named(self.path):
            by_hand = "Remove the entries whose commands run hooks/harness-*.py yourself."
            if self.host.form == "toml":
                bare = self._encoded(entries.uninstall_toml(self.text))
                if HostFile(self.host, self.path, bare).ours():
                    # Edited, or in an array, where 0.1.0 has put them.
                    raise RefusedError(f"{self.path} has hooks of harness outside of its block.", by_hand)
                return bare if bare.strip() or kept is not None else None
            document = entries.parsed(self.text)
            entries.uninstall(document)
            data = self._rendered(document, by_hand)
            return None if kept is None and document in ({}, self.host.root) else data

    def lines(self) -> list[str]:
        """Return the lines to compare: in JSON those of the hooks, and of what the host wants beside them.

        In the whole file the line before a new one gets a comma, and may hold a secret.
        """
        if self.host.form == "toml" or self.data is None:
            return self.text.splitlines()
        document = entries.parsed(self.text)
        ours = {key: document[key] for key in (*self.host.root, "hooks") if key in document}
        return json.dumps(ours, indent=2, ensure_ascii=False).splitlines()

    def _rendered(self, document: entries.Document, by_hand: str) -> bytes:
        """Return `document` as the new content. Raises RefusedError: something would be lost."""
        if self.data is not None and document == entries.parsed(self.text):
            return self.data
        loss = entries.loss(self.text)
        if loss:
            message = f"{self.path} has {loss}, which would be lost. Nothing was written."
            raise RefusedError(message, by_hand)
        return self._encoded(entries.rendered(document, self.text))

    def _encoded(self, text: str) -> bytes:
        mark = codecs.BOM_UTF8 if (self.data or b"").startswith(codecs.BOM_UTF8) else b""
        return mark + text.encode("utf-8")


def read(host: Host, path: Path) -> HostFile:
    """Return the file at `path`. Raises RefusedError: something else lies there."""
    if not path.exists():
        return HostFile(host, path, None)
    status = path.stat()
    if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
        raise RefusedError(f"{path} is not a file that {host.title} could read.", "Move it away first.")
    return HostFile(host, path, path.read_bytes())


def write(file: HostFile, data: bytes | None) -> None:
    """Replace the content of `file` by `data`, or remove it (None); a copy is kept before our first change.

    Directories of the host that are empty then go with it. Raises RefusedError (read-only), HeldError (it has
    changed since it was read), OSError.
    """
    target = Path(os.path.realpath(file.path))
    if target.exists() and not target.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
        raise RefusedError(
            f"{file.path} is read-only.",
            "Its owner does not want it changed; make it writable first, or write to the other --scope.",
        )
    if read(file.host, file.path).data != file.data:
        raise HeldError(f"{file.path} has changed just now.", "Type the same again.")
    if data is None:
        # The backup follows the symlink as it was then: the link may be older than our change.
        fs.remove(target)
        _remove_directories(file)
        return
    if file.data is not None and not file.ours():
        fs.write(file.backup, file.data, mode=stat.S_IMODE(target.stat().st_mode))
    fs.make_directory(target.parent, 0o777)
    # The user may keep their settings elsewhere and link them.
    fs.write(target, data)
    if file.backup.is_file() and file.backup.read_bytes() == data:
        fs.remove(file.backup)


def _is_untouched(before: HostFile, after: HostFile) -> bool:
    """Return whether `after` differs from `before` by our hooks only."""
    try:
        return not before.ours() and before.installed() == after.data
    except (ConfigError, RefusedError):
        # The backup's origin is unknown, so the file itself is edited.
        return False


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name the file in an error."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{path}, {error.message}", CORRECT_IT) from error


def _remove_directories(file: HostFile) -> None:
    """Remove the directories that the host wants for `file`, which is gone, as far as they are empty."""
    names = (name for scope in file.host.files.values() for name in scope)
    name = next((name for name in names if file.path.match(name)), "")
    # The first that is not empty, or belongs to another user, ends it.
    with suppress(OSError):
        for directory in islice(file.path.parents, name.count("/")):
            directory.rmdir()


def difference(before: HostFile, after: HostFile) -> list[str]:
    """Return the first removed and added lines in the form of `diff -u`, without context."""
    one, two = (str(file.path) if file.data is not None else os.devnull for file in (before, after))
    rows = difflib.unified_diff(before.lines(), after.lines(), one, two, n=0, lineterm="")
    return first([harmless(cut(row, 400), keep="\t") for row in rows], 200, " lines")


# -- routes: the files and plugins by which a host loads our hooks

PLUGIN = "harness"
# Claude Code's name for a plugin that it found as a skill folder.
_SKILL_FOLDER = f"{PLUGIN}@skills-dir"
# What makes a skill folder a plugin with hooks.
_MANIFESTS = (".claude-plugin/plugin.json", "hooks/hooks.json")

_CODEX_PLUGIN = re.compile(
    rf'^\[plugins\."({PLUGIN}@[^"\n]+)"\]\s*\n(?:(?!\[).*\n)*?enabled\s*=\s*true', re.MULTILINE
)


class Route(NamedTuple):
    """One settings file or plugin: `title` names it; `path` is the file or the plugin's folder.

    `is_plugin`: harness must not remove any of it. `missing`: the scripts that it names and that are not
    there. `doubt`: why the host may pass it over.
    """

    title: str
    path: Path
    is_plugin: bool = False
    missing: tuple[Path, ...] = ()
    doubt: str | None = None


def project(ctx: Context) -> Path:
    """Return the top of the current work tree, or the current directory if there is none."""
    return ctx.git_at_cwd.top if ctx.git_at_cwd else ctx.cwd


def places(host: Host, scope: Scope, env: Mapping[str, str], project: Path) -> list[Path]:
    """Return the files of `scope`, the one that is written to first."""
    names = host.files.get(scope, ())
    if scope == "project":
        return [project / name for name in names]
    variable, folder = host.home or ("", "")
    moved = env.get(variable) if variable else None
    home = Path(env.get("HOME") or Path.home())
    return [
        Path(moved) / Path(name).relative_to(folder) if moved and Path(moved).is_absolute() else home / name
        for name in names
    ]


def routes(ctx: Context, host: Host) -> list[Route]:
    """Return every route by which `host` loads our hooks here. Raises ConfigError (unreadable file)."""
    return [*_plugins(ctx, host), *_files(ctx, host)]


def others(ctx: Context, host: Host) -> list[tuple[Path, str]]:
    """Return (file, event) of hooks of another harness than ours. Raises ConfigError."""
    return [
        (file.path, event)
        for _, file in by_scope(ctx, host)
        for event, command in file.commands()
        if entries.is_other_harness(command)
    ]


def by_scope(ctx: Context, host: Host) -> Iterator[tuple[Scope, HostFile]]:
    """Yield the files of `host` by scope, whether they exist or not. Raises RefusedError."""
    top = project(ctx)
    seen: set[str] = set()
    for scope in SCOPES:
        for path in places(host, scope, ctx.env, top):
            # A home that is a repository is its own project.
            if os.path.realpath(path) not in seen:
                seen.add(os.path.realpath(path))
                yield scope, read(host, path)


def _files(ctx: Context, host: Host) -> Iterator[Route]:
    scoped = list(by_scope(ctx, host))
    if host.shared:
        scoped.append(("project", read(claude.HOOKS, project(ctx) / host.shared)))
    for scope, file in scoped:
        ours = file.ours()
        if ours:
            missing = tuple(script for _, script in ours if not script.is_file())
            yield Route(f"{scope} file {file.path}", file.path, missing=missing)


def _plugins(ctx: Context, host: Host) -> Iterator[Route]:
    if host is claude.HOOKS:
        yield from _claude_plugins(ctx)
    if host is codex.HOOKS:
        config, text = _codex_config(ctx)
        for name in _CODEX_PLUGIN.findall(text):
            yield Route(f"plugin {name}", config, is_plugin=True)


def _claude_plugins(ctx: Context) -> Iterator[Route]:
    """Claude Code loads a skill folder with a manifest as a plugin.

    Of several with one name it takes an installed plugin, or else the user's own folder.
    """
    # Which plugins its settings switch on or off.
    switches: dict[str, object] = {}
    for _, file in by_scope(ctx, claude.HOOKS):
        switches |= _object(_loaded(file.data).get("enabledPlugins"))
    (settings,) = places(claude.HOOKS, "user", ctx.env, ctx.cwd)
    for name, on in switches.items():
        if name.startswith(f"{PLUGIN}@") and name != _SKILL_FOLDER and on is True:
            yield Route(f"plugin {name}", settings, is_plugin=True)
            return
    top = project(ctx)
    for base, scope in ((settings.parent, "user"), (top / ".claude", "project")):
        folder = base / "skills" / PLUGIN
        is_plugin = all((folder / name).is_file() for name in _MANIFESTS)
        if is_plugin and switches.get(_SKILL_FOLDER) is not False:
            doubt = None if scope == "user" or _is_trusted(ctx, settings, top) else _UNTRUSTED
            yield Route(f"{scope} skill folder {folder}", folder, is_plugin=True, doubt=doubt)
            return


_UNTRUSTED = "Claude Code does not trust this folder yet, and ignores the plugins in it"


def _is_trusted(ctx: Context, settings: Path, top: Path) -> bool:
    moved = ctx.env.get("CLAUDE_CONFIG_DIR")
    known = (settings.parent if moved else settings.parent.parent) / ".claude.json"
    projects = _object(_loaded(known.read_bytes() if known.is_file() else None).get("projects"))
    return _object(projects.get(os.fspath(top))).get("hasTrustDialogAccepted") is True


def _codex_config(ctx: Context) -> tuple[Path, str]:
    """Return the file of Codex's settings, where it notes what a user has trusted, and its text."""
    (hooks,) = places(codex.HOOKS, "user", ctx.env, ctx.cwd)
    config = hooks.with_name("config.toml")
    return config, config.read_text("utf-8", "replace") if config.is_file() else ""


def lacks_trust(ctx: Context, host: Host, route: Route) -> bool:
    """Return whether the user has never trusted the Stop hook of `route`, as only Codex requires.

    Only Codex knows whether earlier trust still holds: it compares the hook with the one that was trusted.
    """
    if host is not codex.HOOKS:
        return False
    _, text = _codex_config(ctx)
    of_plugin = f"{route.title.removeprefix('plugin ')}:hooks/hooks.json"
    keys = [of_plugin] if route.is_plugin else [str(route.path), os.path.realpath(route.path)]
    return not any(f"{key}:stop:" in text for key in keys)


def is_here(ctx: Context, host: Host) -> bool:
    """Return whether `host` seems to be used on this machine: its folder is there."""
    depth = len(Path(host.files["user"][0]).parts) - 1
    return places(host, "user", ctx.env, ctx.cwd)[0].parents[depth - 1].is_dir()


def loaders(ctx: Context) -> tuple[list[str], list[str]]:
    """Return the titles of the hosts that load our hooks here: those that run them, and those that skip them.

    They are skipped until the user has trusted them.
    """
    running: list[str] = []
    skipping: list[str] = []
    for host in registry.HOSTS.values():
        found = readable(ctx, host)
        if isinstance(found, HarnessError):
            continue
        trusted = [not lacks_trust(ctx, host, route) for route in found if not route.missing]
        if trusted:
            (running if any(trusted) else skipping).append(host.title + host.holds)
    return running, skipping


def _loaded(data: bytes | None) -> Mapping[str, object]:
    """Return a settings file as far as we can read it; its host decides whether it is valid."""
    try:
        return entries.parsed((data or b"{}").decode("utf-8-sig"))
    except (ConfigError, UnicodeDecodeError):
        return {}


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def readable(ctx: Context, host: Host) -> list[Route] | HarnessError:
    """Return the routes, or why they cannot be read."""
    try:
        return routes(ctx, host)
    except HarnessError as error:
        return error
