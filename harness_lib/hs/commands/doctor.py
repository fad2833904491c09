"""`hs doctor`: find what may be wrong with hs here, and what to do about it."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from harness_lib.errors import EnvSetupError, Exit, UsageError
from harness_lib.hs.commands.look import Builtin
from harness_lib.hs.output import show
from harness_lib.hs.setup.choose_model import resolve
from harness_lib.loop import approval, trust
from harness_lib.loop.piped import dumps
from harness_lib.loop.providers import keys
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.stages import assemble
from harness_lib.loop.stages.setup import CACHE

_OTHERS = 0o077
_HOLDERS = ("commands", "tools", "hooks.d/*")


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
    """Look at everything; ask no network, and write nothing of ours."""
    yield from _provider(runtime)
    yield from _approval(runtime)
    broken = [*_sources(runtime), *_plugins(runtime)]
    yield from broken or [
        Finding("plugins", f"{len(runtime.sources)} sources of plugins, none of them broken")
    ]
    yield from _credentials(runtime)


def _provider(runtime: Runtime) -> Iterator[Finding]:
    try:
        resolve(runtime)
    except EnvSetupError as error:
        yield Finding("provider", error.message, error.hint or "hs auth set NAME")
    else:
        yield Finding("provider", f"the provider {runtime.provider} can be asked, model {runtime.model}")


def _approval(runtime: Runtime) -> Iterator[Finding]:
    try:
        approval.mode(runtime)
    except approval.UnknownModeError as error:
        yield Finding("settings", str(error), "Write one of them into settings.conf.")


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


def _plugins(runtime: Runtime) -> Iterator[Finding]:
    for plugin in runtime.table.of("tools"):
        if not plugin.is_ours and assemble.schema_of(runtime, plugin.name, plugin.target) is None:
            yield Finding(
                "plugins",
                f"the tool {plugin.origin} is left out: it prints no valid schema",
                f"{plugin.origin} --schema",
            )


def _credentials(runtime: Runtime) -> Iterator[Finding]:
    files = [Path(source, keys.FILE) for source in runtime.sources] + [runtime.home / CACHE]
    for path in dict.fromkeys(files):
        mode = path.stat().st_mode if path.is_file() else 0
        if mode & _OTHERS:
            yield Finding("credentials", f"{path} can be read by others", f"chmod 600 {path}")


def _doctor(runtime: Runtime, args: list[str]) -> int:
    if args not in ([], ["--json"]):
        raise UsageError("hs doctor takes no arguments but --json.")
    findings = list(examine(runtime))
    if args:
        show(dumps([asdict(each) for each in findings]))
        return 0
    for each in findings:
        show(f"{each.level:<4}  {each.what}{f' -> {each.cure}' if each.cure else ''}")
    return int(Exit.CHECK_FAILED if any(each.cure for each in findings) else Exit.DONE)


DOCTOR = Builtin("Say what may be wrong here, and what to do", _doctor)
