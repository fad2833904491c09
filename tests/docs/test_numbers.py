"""The numbers and the flags that the pages name are those of the code."""

from __future__ import annotations

from harness_lib import task
from harness_lib.agents.registry import ADAPTERS
from harness_lib.attempts import requeue, rescue_refs
from harness_lib.hookio import policy
from harness_lib.rules import recovery
from harness_lib.runs import settings
from harness_lib.state import store
from harness_lib.system.processes import runner
from tests.conftest import CHECKOUT

MEGA = 1024 * 1024
IN_WORDS = {2: "two times", 8: "Eight times"}
MAX_FILE, SILENCE, LONGEST = (settings.KEYS[name].default for name in ("max-file", "silence", "longest"))

NAMED = [
    ("docs/hooks.md", f"{IN_WORDS[policy.PATIENCE]} in a row without progress"),
    ("docs/design.md", f"| {IN_WORDS[policy.PATIENCE].split()[0].lower()} blocks in a row"),
    ("docs/commands.md", f"({rescue_refs.DAYS:g} days, {rescue_refs.MEGABYTES} MB)"),
    ("docs/unattended.md", f"both ends are kept, {runner.KEPT_BYTES // MEGA} MB each"),
    ("docs/unattended.md", f"more than {MAX_FILE:g} MB (`--max-file`)"),
    ("harness_lib/verbs/run.py", f"an agent that is silent so long (default {SILENCE:g})"),
    ("harness_lib/verbs/run.py", f"an agent after this (default {LONGEST:g})"),
    ("docs/unattended.md", f"the first {IN_WORDS[requeue.FREE_ROUNDS]} no attempt is counted"),
    ("references/checks.md", f"after `--timeout` seconds ({task.DEFAULT_TIMEOUT_SECONDS} unless told)"),
    ("references/concurrent.md", f"{recovery.DEFAULT_SECONDS // 60} minutes (`{recovery.VARIABLE}`)"),
    ("docs/design.md", f"waited for at most {store.TIMEOUT_SECONDS:g} seconds"),
]
GIVEN = [
    ("claude", "--dangerously-skip-permissions"),
    ("gemini", "--approval-mode yolo"),
    ("copilot", "--allow-all-tools"),
    ("opencode", "--auto"),
    ("codex", "--sandbox workspace-write"),
]


def test_a_page_names_the_number_of_the_code() -> None:
    for page, words in NAMED:
        assert words in (CHECKOUT / page).read_text(), page


def test_an_agent_is_started_with_what_the_page_says() -> None:
    page = (CHECKOUT / "docs/unattended.md").read_text()
    told = page.split("## What the agents may do")[1].split("\n## ")[0]
    for agent, flags in GIVEN:
        assert f"`{flags}`" in told
        assert flags in " ".join(ADAPTERS[agent].launch(None, ()).argv)
