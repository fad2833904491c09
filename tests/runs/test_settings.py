"""The settings of `harness run`: what is typed, the user's file, the project's file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomlkit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness_lib.errors import ConfigError, UsageError
from harness_lib.runs import settings as of_run
from harness_lib.runs.settings import KEYS
from harness_lib.system.processes import sandbox
from tests.runs.workshop import Workshop
from tests.system.git.gitrepo import put

IN_PROJECT = {name for name, key in KEYS.items() if key.in_project}
PROJECTS = {name: key for name, key in KEYS.items() if key.in_project and key.kind != "texts"}


def _values(name: str, project: bool) -> st.SearchStrategy[Any]:
    key = KEYS[name]
    if name == "merge" and project:
        return st.just("branch")
    if key.words:
        return st.sampled_from([word for word in key.words if word not in of_run.NAMED_ENGINES])
    return st.integers(0 if key.zero_is_none else 1, key.most or 300)


def _some(names: Any, *, project: bool = False) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={name: _values(name, project) for name in names})


def users(home: Path) -> Path:
    return home / "config/harness/harness.toml"


def write(path: Path, values: dict[str, Any]) -> None:
    put(path, tomlkit.dumps({"run": values}))


def width(name: str, value: Any) -> float:
    """Return how much `value` allows: more is wider."""
    key = KEYS[name]
    if key.words:
        return -key.words.index(value) if value is not None else 1
    return float("inf") if key.zero_is_none and not value else value


@given(user=_some(PROJECTS), project=_some(PROJECTS, project=True), typed=_some(PROJECTS))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_what_is_typed_counts_and_a_project_only_narrows_the_rest(
    workshop: Workshop, home: Path, user: dict[str, Any], project: dict[str, Any], typed: dict[str, Any]
) -> None:
    write(users(home), user)
    write(workshop.top / "harness.toml", project)
    context = workshop.context()
    context.env = {name: value for name, value in context.env.items() if name != sandbox.CHOICE}
    found = of_run.effective(context, typed)
    for name, (value, origin) in found.items():
        own = user.get(name, KEYS[name].default)
        if name in typed:
            assert (value, origin) == (typed[name], "typed")
        elif value == own:
            assert origin == (str(users(home)) if name in user else "default")
            assert name not in project or width(name, project[name]) >= width(name, own)
        else:
            assert (value, origin) == (project[name], str(workshop.top / "harness.toml"))
            assert width(name, value) < width(name, own)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("jobs 2", "is not TOML"),
        ("[run]\njobs =", "harness.toml, line 2 is not TOML."),
        ('[run]\nmodel = "x', "harness.toml, line 2 is not TOML."),
        ("[run]\njobs = 1\njobs = 2", 'is not TOML: Key "jobs" already exists.'),
        ("[runs]\njobs = 2", "'runs' is not a table of settings"),
        ("run = 2", "'run' is not a table of settings"),
        ("[run]\nmax_cots = 2", "Did you mean max-cost?"),
        ("[run]\njobs = 'two'", "run.jobs must be a whole number, not 'two'"),
        ("[run]\njobs = true", "run.jobs must be a whole number"),
        ("[run]\njobs = 1.5", "run.jobs must be a whole number"),
        ("[run]\nmax-cost = nan", "run.max-cost must be a number, not nan"),
        ("[run]\nmax-cost = inf", "run.max-cost must be a number, not inf"),
        ("[run]\nsilence = 0", "run.silence must be a number above 0"),
        ("[run]\nsandbox = 'of'", "run.sandbox must be one of off, auto"),
        ("[run]\nallow-write = 'x'", "run.allow-write must be a list of texts"),
        ("[run]\nmodel = ''", "run.model must be a text"),
    ],
)
def test_a_wrong_file_is_named_with_its_fault(workshop: Workshop, home: Path, text: str, words: str) -> None:
    put(users(home), text)
    with pytest.raises(ConfigError) as raised:
        of_run.effective(workshop.context(), {})
    assert str(users(home)) in str(raised.value)
    assert words in f"{raised.value} {raised.value.hint}"
    assert workshop("run", "--dry-run", "--agent-command", "true").code == 3
    assert workshop("config", "notify", "x").code == 3


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        *(
            ({name: "claude"}, f"run.{name} is the user's to set")
            for name in sorted(KEYS.keys() - IN_PROJECT)
        ),
        ({"merge": "push"}, "may only be "),
        ({"sandbox": "nono"}, "may only be "),
    ],
)
def test_a_project_sets_nothing_that_widens(workshop: Workshop, setting: dict[str, str], words: str) -> None:
    write(workshop.top / "harness.toml", setting)
    with pytest.raises(ConfigError, match=words):
        of_run.effective(workshop.context(), {})


def test_no_task_changes_what_the_user_or_the_project_protects(workshop: Workshop, home: Path) -> None:
    """The brief names these files; an attempt that changes one has failed, whatever its check says."""
    workshop.commits("Two files to keep", {"LICENSE": "as it was\n", "ci/job.yml": "as it was\n"})
    write(users(home), {"protect": ["LICENSE"]})
    write(workshop.top / "harness.toml", {"protect": ["ci/**"]})
    workshop.commits("Settings")
    workshop.add("One", "test -f a", "--max-attempts", "1", do="write a done\nwrite ci/job.yml changed")
    workshop.add("Two", "test -f b", "--max-attempts", "1", do="write b done\nwrite LICENSE changed")
    workshop.add("Three", "test -f c", do="write c done\nwrite other done")
    workshop.ends(9)
    assert [*workshop.statuses().values()] == ["failed", "failed", "completed"]
    blamed = ["ci/job.yml" in "".join(task["error_log"]) for task in workshop.state["tasks"]]
    assert blamed == [True, False, False]
    assert workshop.read("LICENSE") == "as it was\n"
    assert workshop.ok("config", "protect")["settings"]["protect"]["value"] == ["LICENSE", "ci/**"]


def test_a_run_goes_by_its_settings(workshop: Workshop, home: Path) -> None:
    write(users(home), {"agent-command": "sh -c 'touch made'", "max-tasks": 5})
    write(workshop.top / "harness.toml", {"max-tasks": 1, "sandbox": "off"})
    workshop.add("One", "test -f made")
    workshop.add("Two", "test -f made")
    said = workshop.harness("run", "--no-precheck")
    assert said.returncode == 9, said.stderr
    assert sorted(workshop.statuses().values()) == ["completed", "pending"]


def test_an_agent_that_is_typed_replaces_the_command_of_a_file(workshop: Workshop, home: Path) -> None:
    for typed, other in (("agent", "agent-command"), ("agent-command", "agent")):
        write(users(home), {other: "codex"})
        assert of_run.effective(workshop.context(), {typed: "claude"})[other] == (None, "default")


def test_a_mark_in_front_of_a_file_is_no_part_of_it(workshop: Workshop, home: Path) -> None:
    put(users(home), "\ufeff[run]\njobs = 3\n")
    assert of_run.effective(workshop.context(), {})["jobs"].value == 3


def test_a_setting_is_changed_and_removed_and_the_rest_stays(workshop: Workshop, home: Path) -> None:
    # Many keep such files elsewhere, under version control.
    put(home / "dotfiles/harness.toml", "# mine\n[run]\nmodel = 'm' # best\n")
    users(home).parent.mkdir(parents=True)
    users(home).symlink_to(home / "dotfiles/harness.toml")
    workshop.ok("config", "max-cost", "20")
    assert users(home).is_symlink()
    assert users(home).read_text() == "# mine\n[run]\nmodel = 'm' # best\nmax-cost = 20\n"
    shown = workshop.ok("config")["settings"]
    assert shown["max-cost"] == {"value": 20, "origin": str(users(home))}
    assert shown["jobs"] == {"value": 1, "origin": "default"}
    workshop.ok("config", "max-cost", "2.0")
    assert workshop.ok("config")["settings"]["max-cost"]["value"] == 2
    for _ in range(2):
        workshop.ok("config", "max-cost", "--unset")
    assert users(home).read_text() == "# mine\n[run]\nmodel = 'm' # best\n"
    usual = Path("~/.config/harness/harness.toml").expanduser()
    assert of_run.user_file({"XDG_CONFIG_HOME": "mine"}) == usual
    workshop.ok("config", "jobs", "1", "--project")
    assert workshop.read("harness.toml") == "[run]\njobs = 1\n"
    assert workshop("config", "model", "m", "--project").code == 2
    assert workshop("config", "max-cots", "1").code == 2
    assert "Did you mean max-cost?" in workshop("config", "max-cots", "1").text
    assert "jobs must be a whole number, not 'x'." in workshop("config", "jobs", "x").text
    assert "jobs must be a whole number of at most 64, not 65." in workshop("config", "jobs", "65").text


@pytest.mark.usefixtures("home")
def test_a_setting_that_does_not_count_here_is_named_with_what_does(workshop: Workshop) -> None:
    assert workshop.ok("config", "max-cost", "20")["message"].endswith("harness.toml")
    assert "; a run here takes 1 (default)" in workshop.ok("config", "jobs", "2", "--project")["message"]
    workshop.ok("config", "max-cost", "5", "--project")
    takes = f"; a run here takes 5 ({workshop.top / 'harness.toml'})"
    assert takes in workshop.ok("config", "max-cost", "30")["message"]


def test_an_agent_changes_no_setting(workshop: Workshop, home: Path) -> None:
    assert workshop("config", "max-cost", "20", CLAUDECODE="1").code == 8
    assert not users(home).exists()


def test_the_sandbox_that_the_environment_names_counts_as_typed(workshop: Workshop) -> None:
    write(workshop.top / "harness.toml", {"sandbox": "require"})

    def found(value: str, **typed: str) -> str:
        context = workshop.context()
        context.env = {**context.env, sandbox.CHOICE: value}
        return str(of_run.effective(context, typed)["sandbox"].value)

    assert (found("off"), found("off", sandbox="auto"), found("")) == ("off", "auto", "require")
    with pytest.raises(UsageError, match="HARNESS_SANDBOX must be one of off, auto"):
        found("on")
