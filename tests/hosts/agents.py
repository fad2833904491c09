"""Agents as scripts: what a model does that has read SKILL.md, and what it does that would rather stop."""

from __future__ import annotations

import re
import shlex
from collections.abc import Generator, Mapping, Sequence

from tests.hosts.talk import Actor, Call, Request, Say, Script

# Task id -> the shell command of the first attempt, the second one, …
Work = Mapping[str, Sequence[str]]

DONE = "The list says stop."
TIRED = "That went well. The rest is for another day."

_LAUNCHER = re.compile(r"'/[^'\n]+/bin/harness'|/[^\s`'\"]+/bin/harness\b")
_PAGE = re.compile(r"(?<![\w.])(/[^\s`'\"<>]+)/SKILL\.md")
_FOLDER = re.compile(r"^(?:Base directory for this skill: )?(/.+/harness)/?$", re.MULTILINE)
_LISTED = re.compile(r"^- \S*harness: .*\(file: (\S+?)/(\S+)\)$", re.MULTILINE)
_NEXT = re.compile(r"^next: harness (.+)$", re.MULTILINE)
_STOP = re.compile(r"^stop: \w+", re.MULTILINE)
_BRIEF = re.compile(r"(\S+) \[P\d\] attempt (\d+) of ")


def launcher(text: str) -> str:
    """Return `bin/harness` for a shell, by the path that `text` tells: its own, or that of the page."""
    match = _LAUNCHER.search(text)
    if match:
        return match[0]
    folders = _FOLDER.findall(text) or _PAGE.findall(text)
    assert folders, text[-2000:]
    return shlex.quote(f"{folders[-1]}/bin/harness")


def listed_page(text: str) -> str:
    """Return the path of the page as Codex lists it: a short name of a directory, and the rest."""
    listed = _LISTED.search(text)
    assert listed, text[:4000]
    root = re.search(rf"^- `{listed[1]}` = `(.+)`$", text, re.MULTILINE)
    assert root, text[:4000]
    return f"{root[1]}/{listed[2]}"


def opens_the_page(then: Actor) -> Actor:
    """Return the agent that was told the name of the skill only, reads its page, and goes on as `then`."""

    def script(request: Request) -> Script:
        page = listed_page(request.everything)
        request = yield request.shell(f"echo {page}; cat {page}")
        assert "## The loop" in request.last
        yield from then(request)

    return script


def loads_the_page(tool: str, argument: str, then: Actor) -> Actor:
    """Return the agent that loads the skill by name with its client's `tool`, and goes on as `then`."""

    def script(request: Request) -> Script:
        request = yield Say(calls=(Call(tool, {argument: "harness"}),))
        assert "## The loop" in request.last
        yield from then(request)

    return script


def follows_the_page(work: Work) -> Actor:
    """Return the agent that types `start` and then every `next:`, doing `work` in between."""

    def script(request: Request) -> Script:
        yield from obey(request, launcher(request.everything), "start", work)
        yield Say(DONE)

    return script


def stops_after_each_task(work: Work) -> Actor:
    """Return the agent that wants to end its turn whenever it should take the next task."""

    def script(request: Request) -> Script:
        command: str | None = "start"
        while command:
            request = yield from obey(request, launcher(request.everything), command, work, until="claim")
            request = yield Say(TIRED)
            command = command_in(request.last)

    return script


def obey(
    request: Request, harness: str, command: str | None, work: Work, until: str = ""
) -> Generator[Say, Request, Request]:
    """Type `command` and what the replies say is next, but not `until`; return what was heard last."""
    while command:
        request = yield request.shell(f"{harness} {command}")
        # As the page says: until a reply says `stop`. What it names then is for the user.
        command = None if _STOP.search(request.last) else _next(request.last)
        brief = _BRIEF.search(request.last)
        if brief:
            request = yield request.shell(work[brief[1]][int(brief[2]) - 1])
        elif command == until:
            break
    return request


def told_name(text: str) -> str:
    """Return the name that our hook has told a subagent."""
    match = re.search(r"HARNESS_WORKER_ID=([\w-]+) /\S+/bin/harness claim", text)
    assert match, text[-2000:]
    return match[1]


def command_in(text: str) -> str | None:
    """Return what a hook tells to type after the path of the launcher, if it tells anything."""
    match = re.search(_LAUNCHER.pattern + r"['\"]? ([a-z]+(?: --[a-z]+)*)", text)
    return match[1] if match else None


def _next(reply: str) -> str | None:
    match = _NEXT.search(reply)
    return match[1] if match else None
