"""Ask whether a call may run: the hooks of the stage `tool_gate`, and the user where they or the mode say so.

The permission hooks run before every tool, one after another. None can take back a denial of another. auto:
no question is asked. ask: before everything that does not only read. read-only: nothing else runs.
Subagents ask the user of the outermost hs over a socket. "Always" covers never more than was shown: a command
is known by its program, and where the program does different things by a verb (`git status`, `git reset`),
by that, too.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from harness_lib.errors import ConfigError
from harness_lib.loop import permissions, plugins, trust
from harness_lib.loop.permissions import Ruling
from harness_lib.loop.piped import HookError, Json, as_object, dumps
from harness_lib.loop.runtime import Runtime
from harness_lib.loop.shell_words import HAVE_VERBS, RUN_OTHERS, program_name
from harness_lib.loop.tools import builtin, files, skills
from harness_lib.text import words_of

STAGE = "tool_gate"
_STRICTNESS = ("allow", "ask", "deny")
# The name of the input in which every built-in tool takes a file, existing or not.
_PATH = "path"
_LONGEST_PATH = 4096
VARIABLE = "HARNESS_ASK"
_LONGEST = 16 * 1024 * 1024
# With one of these characters, the first words of a command say little about what it does.
_SHELL = frozenset(";|&`$()<>\n\\")
# A word that the shell takes as it stands: no quotes, no assignment, no pattern, no braces.
_PLAIN = re.compile(r"[\w./+:@-]+", re.ASCII)
_one_user = threading.Lock()


class Verdict(NamedTuple):
    """The decision of the permission hooks; `input` is the input with which the call runs.

    `agreed`: the user has allowed it, by a rule or when asked.
    """

    decision: str
    reason: str
    input: Json
    agreed: bool = False


class Question(NamedTuple):
    """A call that the user decides about; `who` is the subagent that wants it, "" for the session itself.

    `place` names the directories outside of the project that it is about, "" for none; `difference` is what
    an edit changes, line by line.
    """

    name: str
    input: Json
    reason: str = ""
    who: str = ""
    id: str = ""
    place: str = ""
    difference: str = ""


class Said(NamedTuple):
    """The answer of the user; `always`: for similar calls, too; `kept`: also in later runs."""

    allowed: bool
    reason: str = ""
    always: bool = False
    kept: bool = False


Asker = Callable[[Question], Said]


def decide(runtime: Runtime, call: Json) -> Verdict:
    """Return the decision of the permission hooks on `call`, or of the user if they ask: allow or deny.

    Tell that it runs, if it may.
    """
    stage, runtime.stage = runtime.stage, STAGE
    try:
        verdict = _verdict(runtime, call)
    finally:
        runtime.stage = stage
    if verdict.decision == "allow":
        ruling = permissions.decide(runtime, {**call, "input": verdict.input})
        verdict = verdict._replace(agreed=ruling.decision == "allow")
    elif verdict.decision == "ask":
        answer = put(runtime, _question(runtime, call, verdict))
        decision = "allow" if answer.allowed else "deny"
        verdict = verdict._replace(decision=decision, reason=answer.reason, agreed=answer.allowed)
    if verdict.decision == "allow":
        runtime.stream.emit("tool_run", id=call["id"], name=call["name"], input=verdict.input)
    return verdict


def _question(runtime: Runtime, call: Json, verdict: Verdict) -> Question:
    who = runtime.session.id if runtime.env.get("HARNESS_PARENT") else ""
    place = _outside_project(runtime, verdict.input)
    change = builtin.change_of(runtime, call["name"], verdict.input)
    seen = files.unified(change) if change else ""
    return Question(call["name"], verdict.input, verdict.reason, who, call["id"], place, seen)


def _verdict(runtime: Runtime, call: Json) -> Verdict:
    """Return what the permission hooks say to `call`; the strictest counts, and one that fails denies it."""
    passed = call
    if not isinstance(passed["input"], dict):
        return Verdict("deny", "the input of the call is not a JSON object", {})
    verdict = Verdict("allow", "", passed["input"])
    hooks = runtime.table.of("hooks.d", STAGE)
    ours = next((at for at, plugin in enumerate(hooks) if plugin.target is approve), len(hooks))
    if any(not plugin.is_ours for plugin in hooks[ours:]):
        # A later hook may change the input that runs, so the built-in hook is asked about that, too.
        hooks.append(hooks[ours])
    for plugin in hooks:
        try:
            reply = as_object(plugin.target(runtime, passed))
            problem = "printed no JSON object"
        except HookError as failure:
            reply, problem = None, str(failure)
        if reply is None:
            runtime.log(f"[harness] {plugins.failure_line(plugin, problem)}")
            return Verdict("deny", f"the permission hook {plugin.name} {problem}", verdict.input)
        verdict = _stricter(verdict, reply)
        passed = {**passed, "input": verdict.input, "decision": verdict.decision, "reason": verdict.reason}
    return verdict


def _stricter(before: Verdict, reply: Json) -> Verdict:
    decision, tool_input = reply.get("decision") or before.decision, reply.get("input")
    tool_input = before.input if tool_input is None else tool_input
    if decision not in _STRICTNESS:
        problem = f"a permission hook gave an unknown decision: {str(decision)[:100]}"
        return Verdict("deny", problem, before.input)
    if not isinstance(tool_input, dict):
        return Verdict("deny", "a permission hook gave an input that is not a JSON object", before.input)
    if _STRICTNESS.index(decision) > _STRICTNESS.index(before.decision):
        return Verdict(decision, str(reply.get("reason") or ""), tool_input)
    return Verdict(before.decision, before.reason, tool_input)


def approve(runtime: Runtime, call: Json) -> Json:
    """Decide by the rules and the approval mode; tools that only read the project may run.

    Credentials are read by no tool, whatever was asked for.
    """
    name = str(call.get("name") or "")
    # A subagent asks permission hooks about its own calls.
    reads = name == "agent" or plugins.only_reads(runtime, name)
    named = _paths(runtime, call.get("input") or {}) if reads else ()
    if secret := next((path for path in named if trust.is_secret(path)), None):
        return {**call, "decision": "deny", "reason": f"{secret} {trust.REFUSED}"}
    if call.get("decision") == "deny":
        return call
    try:
        ruling = _ruling(runtime, call, reads=reads)
    except ConfigError as error:
        raise HookError(str(error)) from error
    if not ruling.decision:
        return call
    return {**call, "decision": ruling.decision, "reason": ruling.reason or call.get("reason") or ""}


def _ruling(runtime: Runtime, call: Json, *, reads: bool) -> Ruling:
    """Return what rules and the mode say to `call`; no decision where it may run."""
    mode = trust.setting(runtime, "approve")
    ruling = permissions.decide(runtime, call)
    if mode == "read-only" and not reads and ruling.decision != "deny":
        return Ruling("deny", "approve=read-only: nothing may be changed here")
    if ruling.decision in {"ask", "deny"}:
        return ruling
    if ruling.decision == "allow" or mode == "auto":
        return Ruling()
    away = _outside_project(runtime, call.get("input") or {}) if reads else ""
    if reads and not away:
        return Ruling()
    return Ruling("ask", f"It reads outside of the project: {away}" if away else "")


def _outside_project(runtime: Runtime, tool_input: Json) -> str:
    """Return the directories outside of the project that `tool_input` leads to; "" for none."""
    real = [Path(os.path.realpath(path)) for path in _paths(runtime, tool_input)]
    if not real:
        return ""
    # Those of the session and of skills may be read unasked, too.
    inside = [trust.project_root(runtime, runtime.work_directory).resolve()]
    inside += [runtime.session.directory.resolve()] if runtime.session else []
    inside += [skill.path.parent.resolve() for skill in skills.every(runtime).values()]
    away = {str(path.parent) for path in real if not any(path.is_relative_to(each) for each in inside)}
    return ", ".join(sorted(away))


def _paths(runtime: Runtime, value: Any, key: str = "") -> Iterator[Path]:
    """Yield the paths in a value of JSON: what a tool calls `path`, and whatever else names a file."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _paths(runtime, inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _paths(runtime, inner, key)
    elif isinstance(value, str) and 0 < len(value) < _LONGEST_PATH and value.isprintable():
        path = runtime.place(value)
        if key == _PATH or os.path.lexists(path):
            yield path


def put(runtime: Runtime, question: Question) -> Said:
    """Ask the user of the outermost hs; without one, the answer is no.

    Subagents may ask at the same time: there is one user, and "always" answers what waits, too.
    """
    with _one_user:
        return _asked(runtime, question, always_about(question))


def _asked(runtime: Runtime, question: Question, subject: str) -> Said:
    known: set[str] = runtime.kept.setdefault("approved", set())
    if subject and subject in known:
        return Said(allowed=True)
    address = runtime.env.get(VARIABLE)
    if runtime.asker:
        answer: Said = runtime.asker(question)
    elif address:
        answer = _over(address, question)
    else:
        why = f": {question.reason}" if question.reason else ""
        return Said(allowed=False, reason=f"the user has to be asked, and there is none here{why}")
    if answer.allowed and answer.always and subject:
        known.add(subject)
        if answer.kept and (rule := rule_for(question)):
            try:
                permissions.allow(runtime, rule)
            except (ConfigError, OSError) as error:
                runtime.notice(f"the rule {rule} is not saved: {error}")
    return answer


# Each of their words may name a task, so "always" covers exactly these words.
_TARGETS = words_of("gmake gradle gradlew invoke just make mvn mvnw ninja nox rake task tox")

# All verbs of these programs have verbs of their own,
_GROUPING = words_of("aws az flyctl gcloud gh glab heroku")

# and so have these verbs of other programs.
_GROUPS = words_of("""
    access auth bisect builder buildx bundle cache certificate component compose config container context
    dependency dist-tag env flow image lfs machine manifest mod network new notes nuget org override owner
    pip pkg plugin pod profile providers python reflog registry remote repo rollout secret self service set
    sln sparse-checkout stack stash state store submodule subtree swarm system target team telemetry token
    tool toolchain top volume work workload workspace worktree
""")

# Verbs of any program that run the command in their arguments.
_VERBS_THAT_RUN = words_of("""
    debug develop difftool dlx eval exec filter-branch foreach mergetool rebase repl run run-script runner
    shell x
""")


def always_about(question: Question) -> str:
    """Return what "always" covers: a program and its verb, or a tool; "" where that says too little."""
    # The tool of hs, and that of Claude Code.
    if question.name not in {"bash", "Bash"}:
        return f"{question.name} in {question.place}" if question.place else question.name
    command = str(question.input.get("command", "")).strip(" \t")
    named = [] if _SHELL & set(command) else _named(command.replace("\t", " ").split(" "))
    return " ".join(("bash", *named)) if named else ""


def rule_for(question: Question) -> str:
    """Return the rule that "always" stands for in a `settings.json`; "" for what is no command."""
    program, _, words = always_about(question).partition(" ")
    if program != "bash" or "*" in words:
        return ""
    return f"Bash({words})" if program_name(words.split(" ")[0]) in _TARGETS else f"Bash({words}:*)"


def _named(words: list[str]) -> list[str]:
    """Return the first words of a command that tell what it does; none if they do not tell."""
    left = [word for word in words if word]
    name = program_name(left[0]) if left else ""
    if not name or not _PLAIN.fullmatch(left[0]) or name in RUN_OTHERS:
        return []
    if name in _TARGETS:
        return left
    if name not in HAVE_VERBS:
        return left[:1]
    verbs = left[1:3] if name in _GROUPING or _GROUPS & set(left[1:2]) else left[1:2]
    plain = all(_PLAIN.fullmatch(verb) and not verb.startswith("-") for verb in verbs)
    return [left[0], *verbs] if verbs and plain and not _VERBS_THAT_RUN & set(verbs) else []


@contextlib.contextmanager
def served(asker: Asker | None) -> Iterator[str]:
    """Answer questions of other processes by `asker` as long as the block lasts; yield the address."""
    if not asker:
        yield ""
        return
    with tempfile.TemporaryDirectory(prefix="hs-") as directory, socket.socket(socket.AF_UNIX) as server:
        # The directory is ours alone, so that no other user can ask or answer.
        address = str(Path(directory, "ask"))
        server.bind(address)
        server.listen()
        threading.Thread(target=_serve, args=(server, asker), daemon=True).start()
        try:
            yield address
        finally:
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)


def _over(address: str, question: Question) -> Said:
    """Return the answer of the user at `address`; no, if the hs there has ended."""
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(address)
            client.sendall(f"{dumps(question._asdict())}\n".encode())
            reply = as_object(_line(client)) or {}
    except OSError as error:
        return Said(allowed=False, reason=f"the user who has to be asked cannot be reached: {error}")
    reason = str(reply.get("reason") or "")
    return Said(allowed=reply.get("allowed") is True, reason=reason, always=reply.get("always") is True)


def _serve(server: socket.socket, asker: Asker) -> None:
    """Answer one question after another, until `server` is closed: there is one user."""
    while server.fileno() >= 0:
        try:
            client, _ = server.accept()
            with client:
                request = as_object(_line(client)) or {}
                asked: Json = {key: str(request.get(key) or "") for key in Question._fields}
                asked["input"] = request["input"] if isinstance(request.get("input"), dict) else {}
                # The id is one of another process.
                question = Question(**{**asked, "id": ""})
                client.sendall(f"{json.dumps(asker(question)._asdict())}\n".encode())
        except OSError:
            # The process that asked is gone.
            continue


def _line(peer: socket.socket) -> str:
    with peer.makefile("rb") as stream:
        return stream.readline(_LONGEST).decode("utf-8", "replace")
