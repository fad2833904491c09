"""Find the settings files and plugins through which a host loads our hooks. Never writes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from harness_lib.agents import claude, codex
from harness_lib.agents.adapter import SCOPES, Host, Scope
from harness_lib.agents.registry import HOSTS
from harness_lib.core.context import Context
from harness_lib.errors import ConfigError, HarnessError
from harness_lib.hookinstall import entries, files

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


def of(ctx: Context, host: Host) -> list[Route]:
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


def by_scope(ctx: Context, host: Host) -> Iterator[tuple[Scope, files.HostFile]]:
    """Yield the files of `host` by scope, whether they exist or not. Raises RefusedError."""
    top = project(ctx)
    seen: set[str] = set()
    for scope in SCOPES:
        for path in places(host, scope, ctx.env, top):
            # A home that is a repository is its own project.
            if os.path.realpath(path) not in seen:
                seen.add(os.path.realpath(path))
                yield scope, files.read(host, path)


def _files(ctx: Context, host: Host) -> Iterator[Route]:
    scoped = list(by_scope(ctx, host))
    if host.shared:
        scoped.append(("project", files.read(claude.HOOKS, project(ctx) / host.shared)))
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
    for host in HOSTS.values():
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
        return of(ctx, host)
    except HarnessError as error:
        return error
