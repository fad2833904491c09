"""`hs doctor`: find what may be wrong with hs here, and what to do about it."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from harness_lib.errors import ConfigError, EnvSetupError, Exit, UsageError
from harness_lib.hs.setup import resolve
from harness_lib.hs.terminal import show
from harness_lib.loop import discovery, disk, keys, mcp_servers, permissions, processes, request, trust
from harness_lib.loop.hosted import Model
from harness_lib.loop.piped import HookError, Json, as_object, dumps
from harness_lib.loop.runtime import Plugin, Runtime
from harness_lib.loop.tools import asking, skills
from harness_lib.text import Strings, closest

_OTHERS = 0o077
_HOLDERS = ("commands", "tools", "hooks.d/*")
SETTINGS = ("approve", "model", "provider", "sandbox")
# Those of Claude Code, whose form it is, are no mistake.
_PERMISSIONS = (
    *permissions.DECISIONS,
    *("additionalDirectories", "defaultMode", "disableBypassPermissionsMode"),
)
_OF_A_PROVIDER = """
    protocol description model url auth_env max_tokens max_tokens_field stream reasoning_field stream_options
    wire auth authorize_url token_url client_id scope redirect_host redirect_port redirect_path
    authorize_params account_claim
"""
_PROVIDER = (*_OF_A_PROVIDER.split(), *Model._fields)
# Harmless calls that every permission hook has to answer.
_CALLS: tuple[Json, ...] = (
    {"id": "doctor", "name": "read_file", "input": {"path": "README.md"}},
    {"id": "doctor", "name": "bash", "input": {"command": "true"}},
)


@dataclass(frozen=True)
class Finding:
    """One line: `ok`, or `warn` with what to do. `about` is a word for programs."""

    about: str
    what: str
    cure: str = ""

    @property
    def level(self) -> str:
        return "warn" if self.cure else "ok"


def examine(runtime: Runtime) -> Iterator[Finding]:
    """Look at everything, without network and without writing."""
    yield from _provider(runtime)
    looks = (_sources, _tools, _first_lines, _stages, _permission_hooks)
    broken = [finding for look in looks for finding in look(runtime)]
    broken += [*_servers(runtime), *_skills(runtime)]
    yield from broken or [
        Finding("plugins", f"{len(runtime.sources)} sources of plugins, none of them broken")
    ]
    yield from _settings(runtime)
    yield from _rules(runtime)
    yield from _credentials(runtime)


def _provider(runtime: Runtime) -> Iterator[Finding]:
    try:
        resolve(runtime)
    except EnvSetupError as error:
        yield Finding("provider", error.message, error.hint or "hs auth set NAME")
    else:
        yield Finding("provider", f"the provider {runtime.provider} can be asked, model {runtime.model}")


def _sources(runtime: Runtime) -> Iterator[Finding]:
    usable = trust.usable(runtime)
    for source in runtime.sources:
        if source not in usable:
            yield Finding("plugins", f"the plugins and settings in {source} are not used", "hs trust")
            continue
        for holder in _HOLDERS:
            for path in sorted(Path(source).glob(f"{holder}/[!.]*")):
                if path.is_file() and not path.stat().st_mode & stat.S_IXUSR:
                    yield Finding(
                        "plugins", f"{path} is not a plugin: it is not executable", f"chmod +x {path}"
                    )


def _tools(runtime: Runtime) -> Iterator[Finding]:
    for plugin in runtime.table.of("tools"):
        if plugin.is_ours or not os.path.isabs(plugin.origin):  # noqa: PTH117 (others are no programs)
            continue
        schema = request.schema_of(runtime, plugin)
        if schema is None:
            why = getattr(plugin.target, "fault", "") or "it prints no valid schema"
            what = f"the tool {plugin.origin} is left out: {why}"
            yield Finding("plugins", what, f"{plugin.origin} --schema")
        elif "input_schema" not in schema:
            what = f"the tool {plugin.origin} has no input_schema, so the model does not know what it takes"
            yield Finding("plugins", what, f'add "input_schema" to what {plugin.origin} --schema prints')


def _first_lines(runtime: Runtime) -> Iterator[Finding]:
    """Find programs that cannot be started; tools and permission hooks are started anyway."""
    for plugin in runtime.table.all:
        fault = getattr(plugin.target, "fault", "")
        if fault and plugin.kind != "tools" and plugin.stage != asking.STAGE:
            what = f"the plugin {plugin.origin} cannot be started: {fault}"
            yield Finding("plugins", what, "correct its first line")


def _stages(runtime: Runtime) -> Iterator[Finding]:
    """Find hooks of stages that nothing goes to: neither hs, nor a hook or command that names the stage."""
    programs = [plugin for plugin in runtime.table.all if os.path.isabs(plugin.origin)]  # noqa: PTH117
    texts = {plugin.origin: disk.read_text(Path(plugin.origin)) for plugin in programs}
    for plugin in programs:
        if plugin.kind != "hooks.d" or plugin.stage in discovery.HOOKS:
            continue
        others = (text for origin, text in texts.items() if Path(origin).parent != Path(plugin.origin).parent)
        if not any(plugin.stage in text for text in others):
            what = f"the hook {plugin.origin} never runs: there is no stage {plugin.stage}"
            yield Finding("plugins", what, _instead(plugin.stage, discovery.HOOKS, "stages"))


def _permission_hooks(runtime: Runtime) -> Iterator[Finding]:
    """Ask each hook of `tool_gate` about harmless calls: one that fails denies every call."""
    for plugin in runtime.table.of("hooks.d", asking.STAGE):
        problems = (_answer(runtime, plugin, call) for call in _CALLS if not plugin.is_ours)
        problem = next((each for each in problems if each), "")
        if problem:
            what = f"the permission hook {plugin.origin} {problem}, which denies every such call"
            call = f"echo '{dumps(_CALLS[0])}' | {plugin.origin}"
            yield Finding("plugins", what, f"repair it, and try: {call}")


def _answer(runtime: Runtime, plugin: Plugin, call: Json) -> str:
    """Return what is wrong with the answer of a hook to `call`; "" for nothing."""
    runtime.stage = plugin.stage
    try:
        env, stdin = runtime.variables(), f"{dumps(call)}\n".encode()
        printed = processes.printed(plugin.origin, env=env, cwd=runtime.cwd, stdin=stdin)
    except HookError as failure:
        return str(failure)
    return "" if as_object(printed) is not None else "prints no JSON object"


def _servers(runtime: Runtime) -> Iterator[Finding]:
    unset: list[str] = []
    runtime.notices.append(unset.append)
    for path in _files(runtime, mcp_servers.FILE):
        entries, problems = mcp_servers.read(path)
        if problems and (broken := _json_error(path)):
            yield Finding("mcp", f"{path} is not JSON: {broken}", f"repair {path}")
            continue
        for problem in problems:
            yield Finding("mcp", problem.rstrip("."), f"repair {path}")
        for name, entry in entries.items():
            started = mcp_servers.Server(runtime, name, entry).filled
            command, env = started.get("command", ""), {**runtime.env, **started.get("env", {})}
            if command and shutil.which(command, path=env.get("PATH", "")) is None:
                what = f"the MCP server {name} cannot be started: there is no command {command}"
                yield Finding("mcp", what, f"install {command}, or change {path}")
    for said in unset:
        yield Finding("mcp", said.rstrip("."), "set it, or give it a default: ${NAME:-DEFAULT}")


def _json_error(path: Path) -> str:
    try:
        json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        return str(error)
    return ""


def _skills(runtime: Runtime) -> Iterator[Finding]:
    for skill in skills.every(runtime).values():
        if not skill.description:
            what = f"the skill {skill.name} has no description, so the model does not know when to load it"
            yield Finding("skills", what, f"add a line description: to {skill.path}")


def _settings(runtime: Runtime) -> Iterator[Finding]:
    """Find an unknown mode, and keys that nothing reads in the settings, of providers and models too."""
    try:
        trust.setting(runtime, "approve")
    except ConfigError as error:
        yield Finding("settings", str(error), "Write one of them into settings.conf.")
    for path in _files(runtime, "settings.conf"):
        yield from _misspelt(path, disk.read_conf(path), SETTINGS)
    for path in _files(runtime, "providers/*.conf"):
        named = [key for key in disk.read_conf(path) if not key.startswith("header.")]
        yield from _misspelt(path, named, _PROVIDER)
    for path in _files(runtime, "models.conf"):
        lines = [line.split()[1:] for line in disk.read_text(path).splitlines()]
        pairs = [word.partition("=")[0] for line in lines for word in line if "=" in word]
        yield from _misspelt(path, pairs, Model._fields)


def _rules(runtime: Runtime) -> Iterator[Finding]:
    """Find a `settings.json` that cannot be understood, and lists of rules that nothing reads."""
    try:
        permissions.rules(runtime)
    except permissions.RulesError as error:
        yield Finding("settings", f"{error}, so no call runs", "repair it")
        return
    for path in _files(runtime, permissions.FILE):
        named = disk.read_object(path).get("permissions") or {}
        yield from _misspelt(path, named, _PERMISSIONS)


def _misspelt(path: Path, named: Iterable[str], known: Strings) -> Iterator[Finding]:
    for key in dict.fromkeys(named):
        if key not in known:
            yield Finding("settings", f"{path}: there is no setting {key}", _instead(key, known, "settings"))


def _instead(word: str, known: Iterable[str], kind: str) -> str:
    """Return what to write in place of `word`: the nearest known one, else all of them."""
    close = closest(word, known)
    return f"did you mean {close}?" if close else f"{kind}: {', '.join(sorted(known))}"


def _files(runtime: Runtime, pattern: str) -> list[Path]:
    """Return the files of the sources that may be used and are not bundled."""
    mine = [Path(source) for source in trust.usable(runtime)]
    outside = (source for source in mine if not source.is_relative_to(runtime.root))
    return [path for source in outside for path in sorted(source.glob(pattern)) if path.is_file()]


def _credentials(runtime: Runtime) -> Iterator[Finding]:
    files = [Path(source, keys.FILE) for source in runtime.sources] + [runtime.home / discovery.CACHE]
    for path in dict.fromkeys(files):
        mode = path.stat().st_mode if path.is_file() else 0
        if mode & _OTHERS:
            yield Finding("credentials", f"{path} can be read by others", f"chmod 600 {path}")


def run(runtime: Runtime, args: list[str]) -> int:
    """Print what was found; return 1 where there is something to do."""
    if args not in ([], ["--json"]):
        raise UsageError("hs doctor takes no arguments but --json.")
    # The findings say what is broken; the usual notices would repeat it.
    runtime.env["HARNESS_LOG"] = os.devnull
    findings = list(examine(runtime))
    if args:
        show(dumps([asdict(each) for each in findings]))
    else:
        for each in findings:
            show(f"{each.level:<4}  {each.what}{f' -> {each.cure}' if each.cure else ''}")
    return int(Exit.CHECK_FAILED if any(each.cure for each in findings) else Exit.DONE)
