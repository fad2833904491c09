"""Collect the options of an unattended run, and check its preconditions."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, fields, replace

from harness_lib import typed
from harness_lib.agents import command, registry
from harness_lib.attempts import complete, merge_queue, publish, target_branch
from harness_lib.core import sessions, trust
from harness_lib.core.context import Context, MergeMode
from harness_lib.errors import EnvSetupError, HeldError, UsageError
from harness_lib.rules import rechecks, recovery, run_state
from harness_lib.rules.run_state import Budget
from harness_lib.runs import agent_process, confinement
from harness_lib.runs.worker_port import AgentOptions, WorkerConfig
from harness_lib.state.api import Questions
from harness_lib.system.git import calls, submodules
from harness_lib.system.git.repository import Git
from harness_lib.system.processes import owner
from harness_lib.text import some

# How many branches are suggested for a mistyped one.
NAMED = 5


@dataclass(frozen=True, kw_only=True)
class Options(AgentOptions):
    """The options of a run.

    `final_check` None: by the number of tasks. `review`: finished work waits for the user's review. `merge`
    is where finished work goes, `merge_command` opens a pull request.
    """

    workers: int = 1
    target: str | None = None
    budget: Budget = field(default_factory=Budget)
    final_check: rechecks.Scope | None = None
    sandbox: confinement.Asked = field(default_factory=confinement.Asked)
    review: bool = False
    merge: MergeMode = "local"
    merge_command: str | None = None

    def worker_config(self, ctx: Context, number: int, place: str, limits: Budget) -> WorkerConfig:
        """Return the configuration of worker `number` of the run `ctx`."""
        assert ctx.target is not None
        return WorkerConfig(
            worker=recovery.worker_name(ctx.owner.worker, number),
            number=number,
            place=place,
            target=ctx.target,
            limits=run_state.write_budget(limits),
            merging=ctx.merging,
            **{each.name: getattr(self, each.name) for each in fields(AgentOptions)},
        )


# Seconds that a claim of a run is valid without a heartbeat, if machines share its list.
SHARED_LEASE = "180"


def prepare(ctx: Context, options: Options) -> tuple[Context, Options]:
    """Return the context of the run, and its options with the agent chosen.

    Raises UsageError, RefusedError or EnvSetupError for what would stop the run, before anything begins.
    """
    if options.agent is not None and options.agent_command is not None:
        raise UsageError(
            "--agent and --agent-command cannot be combined.", "Use one of them: harness run --help"
        )
    if options.agent_command is not None:
        command.adapter(options.agent_command)
    questions = ctx.store.ask_to_change()
    _require_no_own_session(ctx, questions)
    existing = Context(env=owner.without_agent(ctx.env), cwd=ctx.root.path, clock=ctx.clock, say=ctx.say)
    trust.require(existing, questions)
    calls.require_for_runs(existing.cwd)
    # The branch of the work tree that the user is in, which need not be the one with the list.
    here = ctx.git if ctx.git.common_dir == existing.git.common_dir else existing.git
    existing.target = _target(here, options.target)
    target_branch.require_room(existing.git, existing.target)
    _require_submodules(existing)
    existing.merging = publish.of(existing, existing.target, options.merge, options.merge_command or "")
    if existing.merging.mode == "turns":
        # Other machines must not wait long for the work of one that is gone.
        existing.env = {recovery.VARIABLE: SHARED_LEASE, **existing.env}
        existing.target = target_branch.waiting(existing.merging.branch)
        target_branch.require_room(existing.git, existing.target)
        merge_queue.refresh(existing)
    elif options.merge in ("branch", "pull-request"):
        # The user's branch stays as it is.
        existing.target = target_branch.waiting(existing.target)
        target_branch.require_room(existing.git, existing.target)
    review = {complete.REVIEW: "1"} if options.review else {}
    existing.env = {**existing.env, **confinement.of_run(existing, options.sandbox), **review}
    return existing, replace(options, agent=_agent(existing, options))


def _require_no_own_session(ctx: Context, questions: Questions) -> None:
    """Raise HeldError if the caller's own session holds the list: waiting for it would never end."""
    own = None if questions.concurrent else sessions.mine(questions, ctx)
    if own is not None and sessions.is_live(own, questions, ctx):
        raise HeldError(
            f"Session {own.number} holds this list since {own.started_at}; it is your own.",
            "End it, then type this again: harness stop",
        )


def _require_submodules(ctx: Context) -> None:
    """Raise EnvSetupError if a submodule of the user lacks the commit that workers need."""
    assert ctx.target is not None
    lacking = submodules.lacking(ctx.git, target_branch.tip(ctx.git, ctx.target))
    if lacking and not ctx.root.init_script.is_file():
        path, commit = next(iter(lacking.items()))
        raise EnvSetupError(
            f"The submodule {path!r} is recorded at {commit[:12]}, which your checkout of it does not have.",
            f"Fetch it: {typed.git('submodule', 'update', '--init', path)}",
        )


def _target(git: Git, asked: str | None) -> str:
    """Return the full name of the branch to merge into: the given one, or the current one."""
    if asked is None:
        branch = target_branch.current(git)
    else:
        branch = asked if asked.startswith(target_branch.HEADS) else target_branch.HEADS + asked
    # By name: `git.ref` would accept main~1, too.
    existing = [name for name, _ in git.refs(target_branch.HEADS)]
    if branch in existing or target_branch.waiting(branch) in existing:
        return branch
    if not existing or asked is None:
        raise target_branch.error(git, branch)
    name = target_branch.short(branch)
    theirs = [target_branch.short(ref) for ref in existing if not ref.startswith(target_branch.WAITING)]
    alike = difflib.get_close_matches(name, theirs, n=NAMED)
    named = some(list(dict.fromkeys([*alike, *theirs])), NAMED)
    raise UsageError(
        f"There is no branch {name}.",
        f"There are: {named}. Or make it first: git branch NAME",
    )


def _agent(ctx: Context, options: Options) -> str | None:
    """Return the given agent, or the first known one that this machine has."""
    if options.agent_command is not None:
        return None
    if options.agent is not None:
        agent_process.require(registry.named(options.agent), ctx)
        return options.agent
    name = next((name for name, each in registry.ADAPTERS.items() if agent_process.is_ready(each, ctx)), None)
    if name is None:
        raise EnvSetupError(
            f"No agent was found on the PATH (looked for {', '.join(registry.ADAPTERS)}).",
            "Install one, give hs a key (ANTHROPIC_API_KEY, OPENAI_API_KEY), or name a command "
            "that reads the brief: harness run --agent-command 'my-agent'",
        )
    return name
