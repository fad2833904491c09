"""`harness hooks`: install our hooks in a host's settings, show them, and remove them.

Only entries of harness are changed, and the difference is shown first. Trust that a host asks of its user is
named but never given for them.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path

from harness_lib import typed
from harness_lib.agents.adapter import SCOPES, Host, Scope
from harness_lib.agents.registry import HOSTS, WITHOUT_HOOKS
from harness_lib.core.context import Context, Reply
from harness_lib.errors import Exit, HarnessError, RefusedError, UsageError
from harness_lib.hookinstall import entries, host_files
from harness_lib.hookinstall.host_files import HostFile, Route

SUMMARY = "install, show or remove the hooks that keep an agent at work"
EXAMPLE = "harness hooks install --agent codex --dry-run"
HELP_ORDER = 510

Ask = Callable[[str], bool]
NOT_MEASURED = "Support for {} follows its documentation; it has not been tried with the program itself."


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=("install", "status", "uninstall"),
        default="status",
        help="default: status",
    )
    parser.add_argument("--agent", choices=(*HOSTS, *WITHOUT_HOOKS), help="whose hooks")
    parser.add_argument(
        "--scope",
        choices=SCOPES,
        help="install: for all projects of yours (user, the default) or for this one; uninstall: only there",
    )
    parser.add_argument("--dry-run", action="store_true", help="show the difference, write nothing")


def answer(ctx: Context, args: Namespace) -> Reply:
    if args.action == "status":
        return status(ctx, args.agent)
    if args.agent is None:
        raise UsageError("--agent is missing.", typed.harness("hooks", args.action, "--agent", "claude"))
    ask = args.screen.may_ask
    if args.action == "install":
        return install(ctx, args.agent, args.scope or "user", dry_run=args.dry_run, ask=ask)
    return uninstall(ctx, args.agent, args.scope, dry_run=args.dry_run, ask=ask)


def install(ctx: Context, agent: str, scope: Scope, *, dry_run: bool, ask: Ask | None) -> Reply:
    """Add our hooks to the settings of `agent`, after showing the difference. Idempotent.

    `ask` shows the difference and returns the user's answer; None writes at once. Exit 8 if they say no.
    """
    if agent in WITHOUT_HOOKS:
        return _limit(agent)
    host = HOSTS[agent]
    reached = [route for route in host_files.routes(ctx, host) if not route.missing]
    file = host_files.read(host, _target(ctx, host, scope))
    elsewhere = [route for route in reached if route.is_plugin or route.path != file.path]
    if elsewhere:
        return _already_loaded(host, elsewhere[0])
    changed = file.installed()
    warnings = [
        f"{path} runs another harness too at {event}, not written by this command; both will answer"
        for path, event in dict.fromkeys(host_files.others(ctx, host))
    ]
    if not host.is_measured:
        warnings.append(NOT_MEASURED.format(host.title))
    if {"cache", ".cache"} & set(entries.folder().parts):
        warnings.append(f"{entries.folder()} lies in a cache; the hooks fall silent when that is emptied")
    done = f"The hooks are in {file.path}."
    then = f"What to do in {host.title}: {host.trust[scope]}"
    return _carry_out(file, changed, done, warnings, dry_run=dry_run, ask=ask, then=then)


def uninstall(ctx: Context, agent: str, scope: Scope | None, *, dry_run: bool, ask: Ask | None) -> Reply:
    """Remove our hooks from the settings of `agent` (in one `scope`, or everywhere).

    Asks and raises as `install` does.
    """
    if agent in WITHOUT_HOOKS:
        return _limit(agent)
    host = HOSTS[agent]
    installed = [
        file for where, file in host_files.by_scope(ctx, host) if scope in (None, where) and file.ours()
    ]
    replies = []
    for file in installed:
        done = f"{file.path} has no hooks of harness."
        replies.append(_carry_out(file, file.uninstalled(), done, [], dry_run=dry_run, ask=ask))
    left = [route for route in host_files.routes(ctx, host) if route.is_plugin]
    warnings = [f"{route.title} still brings hooks; {host.title} itself switches it off" for route in left]
    if not replies:
        return _reply(f"{host.title} has no hooks of harness in its files.", warnings=warnings)
    return _reply(
        "\n".join(each.message for each in replies),
        warnings=warnings,
        exit_code=max(each.exit for each in replies),
        extra={**replies[0].extra, "files": [each.extra["file"] for each in replies]},
    )


def status(ctx: Context, agent: str | None) -> Reply:
    """Report how each agent (or only `agent`) loads our hooks here."""
    if agent in WITHOUT_HOOKS:
        return _limit(str(agent))
    chosen = [HOSTS[agent]] if agent else list(HOSTS.values())
    lines: list[str] = []
    facts: list[dict[str, object]] = []
    for host in chosen:
        readable = host_files.readable(ctx, host)
        if isinstance(readable, HarnessError):
            lines.append(f"{host.title}: {readable.message}")
            facts.append({"agent": host.name, "error": readable.message})
            continue
        lines += [f"{host.title}: {_describe(ctx, host, route)}" for route in readable] or [
            f"{host.title}: no hooks"
        ]
        facts.append({"agent": host.name, "routes": [_facts(route) for route in readable]})
    if not agent:
        lines += [f"{name}: has no hooks that could hold it" for name in WITHOUT_HOOKS]
    return _reply("\n".join(lines), extra={"agents": facts}, follow="harness doctor")


def _target(ctx: Context, host: Host, scope: Scope) -> Path:
    paths = host_files.places(host, scope, ctx.env, host_files.project(ctx))
    if not paths:
        raise UsageError(
            f"{host.title} has one file for all projects of the user.",
            typed.harness("hooks", "install", "--agent", host.name, "--scope", "user"),
        )
    path = paths[0]
    top = host_files.project(ctx).resolve()
    if scope == "project" and top not in path.resolve().parents:
        # A clone may contain such a link, to make us write outside of it.
        raise RefusedError(
            f"{path} leads out of the project, to {path.resolve()}.", "Use --scope user, or remove the link."
        )
    return path


def _carry_out(
    file: HostFile,
    changed: bytes | None,
    done: str,
    warnings: list[str],
    *,
    dry_run: bool,
    ask: Ask | None,
    then: str = "",
) -> Reply:
    extra: dict[str, object] = {"agent": file.host.name, "file": str(file.path), "written": False}
    if changed == file.data:
        lines = [f"Nothing had to be changed. {done}", *filter(None, [then])]
        return _reply("\n".join(lines), warnings=warnings, extra=extra)
    shown = host_files.difference(file, HostFile(file.host, file.path, changed))
    extra["diff"] = shown
    if dry_run:
        lines = [*shown, "Nothing was written: --dry-run."]
        return _reply("\n".join(lines), warnings=warnings, extra=extra)
    text = "\n".join(_summary(file, changed))
    if ask and not ask(f"{text}\nWrite this? (--dry-run shows it line by line) [y/N] "):
        return _reply("Nothing was written.", warnings=warnings, exit_code=Exit.REFUSED, extra=extra)
    host_files.write(file, changed)
    if file.backup.exists():
        done += f"\nThe file as it was before: {file.backup}"
    done = "\n".join(filter(None, [done, then]))
    return _reply(f"{text}\n{done}" if not ask else done, warnings=warnings, extra={**extra, "written": True})


def _summary(file: HostFile, changed: bytes | None) -> list[str]:
    """Summarize the change of `file` in about ten lines: which events get a hook or lose one."""
    before, after = file.ours(), HostFile(file.host, file.path, changed).ours()
    rows = [("-", hook) for hook in before if hook not in after]
    rows += [("+", hook) for hook in after if hook not in before]
    rows = rows or [("~", hook) for hook in after]
    kind = "a new file" if file.data is None else "nothing else in it changes"
    return [f"{file.path} ({kind}):", *(f"  {sign} {event}: {script}" for sign, (event, script) in rows)]


def _already_loaded(host: Host, route: Route) -> Reply:
    doubt = f" But {route.doubt}." if route.doubt else ""
    return _reply(
        f"{host.title} gets the hooks already, through the {route.title}; twice would double each answer. "
        f"Nothing was written.{doubt}\nWhat to do in {host.title}: {host.trust['user']}",
        extra={"agent": host.name, "file": str(route.path), "written": False},
    )


def _describe(ctx: Context, host: Host, route: Route) -> str:
    if route.missing:
        return f"{route.title}, but {route.missing[0]} is gone"
    if host_files.lacks_trust(ctx, host, route):
        return f"{route.title}, not trusted yet: start codex, type /hooks"
    return f"{route.title}{f', but {route.doubt}' if route.doubt else ''}"


def _facts(route: Route) -> dict[str, object]:
    return {
        "what": route.title,
        "path": str(route.path),
        "plugin": route.is_plugin,
        "missing": [str(path) for path in route.missing],
        "doubt": route.doubt,
    }


def _limit(agent: str) -> Reply:
    return _reply(WITHOUT_HOOKS[agent], extra={"agent": agent, "written": False})


def _reply(
    message: str,
    *,
    warnings: list[str] | None = None,
    exit_code: Exit = Exit.DONE,
    extra: dict[str, object] | None = None,
    follow: str = "harness hooks status",
) -> Reply:
    return Reply(message, exit=exit_code, next=follow, warnings=tuple(warnings or ()), extra=extra or {})
