"""Agents and checks of a run in a sandbox, with each engine that starts on this machine."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import sys
from pathlib import Path

import pytest

from harness_lib.agents.adapter import Launch
from harness_lib.runs import confinement
from harness_lib.system.processes import engines, sandbox
from tests.another_user import needs_root, told
from tests.conftest import for_release
from tests.runs.workshop import Workshop
from tests.sandbox.conftest import without_bubblewrap
from tests.system.git.gitrepo import put


def test_an_agent_writes_its_work_tree_its_temporary_directory_and_caches(
    engine: str, workshop: Workshop, home: Path, tmp_path: Path
) -> None:
    cargo = tmp_path / "cargo"
    (home / ".cache").mkdir()
    put(cargo / "registry/a", "")
    for secret in (cargo / "credentials.toml", home / ".vault-token"):
        put(secret, "a token")
    (home / ".gradle").mkdir()
    task = workshop.add(
        "Write",
        "grep -q done made && test ! -e ~/outside && touch $CARGO_HOME/registry/a && "
        "! grep -q token $CARGO_HOME/credentials.toml ~/.vault-token && "
        "touch ~/.gradle/wrapper/a && ! touch ~/.gradle/init.gradle",
        do="sh touch $TMPDIR/a ~/.cache/b; "
        'test "$JAVA_TOOL_OPTIONS" = "\\"-Djava.io.tmpdir=$TMPDIR\\" -Xa" && '
        "mkdir $MISE_STATE_DIR && echo done > made; touch ~/outside; true",
    )
    said = workshop.ends(0, "--sandbox", engine, JAVA_TOOL_OPTIONS="-Xa", CARGO_HOME=str(cargo))
    assert "sandbox: " in said.stdout
    assert workshop.statuses() == {task: "completed"}
    assert (home / ".cache/b").exists()
    assert not (home / "outside").exists()
    workshop.nothing_is_left_over()


def test_what_prepares_the_checkout_is_confined_there(
    each_engine: str, workshop: Workshop, home: Path
) -> None:
    script = "touch ready.pyc\ncat ~/.ssh/* > stolen.pyc\necho x > .git/hooks/x\n{} ~/outside\n"
    workshop.put("harness-init.sh", script.format("rm -f"), executable=True)
    (workshop.top / ".git/hooks").mkdir(exist_ok=True)
    workshop.add("One", "test -f one", do="sh touch one")
    workshop.ends(0, "--sandbox", each_engine)
    assert (workshop.top / "ready.pyc").exists()
    assert workshop.read("stolen.pyc") == ""
    # Landlock cannot forbid a part of what may be written.
    assert (workshop.top / ".git/hooks/x").exists() is (each_engine == "nono")
    workshop.put("harness-init.sh", script.format("touch"), executable=True)
    workshop.add("Two", "test -f two", do="sh touch two")
    said = workshop.ends(7, "--sandbox", each_engine)
    assert "write ~/outside. Allow it: harness run --allow-write" in " ".join(said.stderr.split())
    assert not (home / "outside").exists()


def test_a_path_that_the_user_names_may_be_written(engine: str, workshop: Workshop, home: Path) -> None:
    (home / "shared").mkdir()
    workshop.add("Share", "test -f made", do="sh touch ~/shared/a && touch made")
    workshop.ends(0, "--sandbox", engine, "--allow-write", str(home / "shared"))
    assert (home / "shared/a").exists()


def test_programs_are_found_by_a_link_and_by_their_path_in_a_temporary_directory(
    engine: str, workshop: Workshop, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As fnm names Node.js on the PATH, for one shell; and a script that is the agent."""
    put(home / "node/bin/tool", "#!/bin/sh\ntest -f made\n", executable=True)
    (workshop.top.parent / "shell").symlink_to(home / "node")
    monkeypatch.setenv("PATH", f"{workshop.top.parent}/shell/bin:{os.environ['PATH']}")
    put(workshop.top.parent / "agent.sh", "touch made; tool\n")
    workshop.add("Try", "tool")
    workshop.ends(0, "--sandbox", engine, agent=f"sh {workshop.top.parent}/agent.sh")


def test_where_no_engine_starts_a_run_with_one_is_refused_and_auto_says_so(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "ENGINES", ("bubblewrap",))
    # git is asked before.
    (tmp_path / "bin").mkdir()
    for name in ("git", "true"):
        found = shutil.which(name)
        assert found
        (tmp_path / "bin" / name).symlink_to(found)
    typed = ("run", "--agent-command", "true", "--dry-run", "--sandbox")
    path = str(tmp_path / "bin")
    said = workshop(*typed, "require", PATH=path)
    assert said.code == 7
    assert "Install bubblewrap" in said.text
    assert "bubblewrap: bwrap is not on the PATH" in said.text
    assert "sandbox: none" in workshop(*typed, "auto", PATH=path).text


def test_a_run_is_in_a_sandbox_by_itself_where_an_engine_starts(
    each_engine: str, workshop: Workshop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if each_engine == "nono":
        monkeypatch.setenv("PATH", without_bubblewrap(tmp_path))
    monkeypatch.delenv("HARNESS_SANDBOX")
    workshop.add("Try", "test -f made", do="sh touch ~/outside; touch made")
    said = workshop.ends(0)
    title = engines.TITLES["nono" if each_engine == "nono" else "bubblewrap"]
    assert f"sandbox: {title}; writes: " in said.stdout.splitlines()[0]
    assert not (tmp_path / "outside").exists()


def test_a_check_cannot_read_what_is_secret(each_engine: str, workshop: Workshop, home: Path) -> None:
    """The login of an agent, too, and what git ignores in the user's checkout but for what checks need."""
    top = workshop.top
    logins = [home / name for name in (".codex/auth.json", ".claude.json", ".kimi-code/config.toml")]
    secret = [*logins, top / ".env.production", top / "conf/key"]
    for path in secret:
        put(path, "secret")
    # An agent may have committed it.
    workshop.put("conf/pyvenv.cfg", "")
    workshop.sh("add", "-f", "conf/pyvenv.cfg")
    workshop.sh("commit", "-q", "-m", "Pretend")
    workshop.put("node_modules/part", "needed")
    workshop.put(".direnv/mine", "needed")
    workshop.put("env/pyvenv.cfg", "needed")
    workshop.put("env/.gitignore", "*")
    workshop.put(".git/info/exclude", ".env.*\nnode_modules\n.direnv\n.harness\nharness-*\nconf\n")
    needed = f"cd {workshop.top} && cat node_modules/part .direnv/mine env/pyvenv.cfg README.md && cd -"
    unread = " && ".join(f"! grep secret {path}" for path in secret)
    workshop.add("Check", f"test -f made && {needed} && {unread}", do="sh touch made")
    workshop.ends(0, "--sandbox", each_engine)


@pytest.mark.parametrize(
    ("program", "login"),
    [("codex", ".codex/auth.json"), ("qwen", ".qwen/settings.json"), ("kimi", ".kimi-code/config.toml")],
)
def test_the_login_of_the_agent_that_works_is_its_own(
    engine: str, workshop: Workshop, home: Path, program: str, login: str
) -> None:
    """Also of one that only a command of the user's starts."""
    put(home / login, "mine")
    put(home / ".gemini/oauth_creds.json", "another's")
    put(home / ".config/gcloud/key", "a cloud's")
    text = f"#!/bin/sh\ncat ~/{login} ~/.gemini/* ~/.config/gcloud/* > made\n"
    put(home / "bin" / program, text, executable=True)
    workshop.add("Read", "grep mine made && ! grep -e another -e cloud made")
    workshop.ends(0, "--sandbox", engine, agent=f"{home}/bin/{program}; true")


@pytest.mark.parametrize(
    ("program", "place"),
    [
        ("hs", ".harness"),
        *for_release(("claude", ".claude"), ("codex", ".codex"), ("copilot", ".copilot")),
        *for_release(("gemini", ".gemini"), ("opencode", ".local/share/opencode")),
    ],
)
def test_the_directory_of_an_agent_that_was_never_used_is_made(
    engine: str, workshop: Workshop, home: Path, program: str, place: str
) -> None:
    """In a new home: it could not make it in the sandbox, kept no session, and most did not start."""
    text = f"#!/bin/sh\necho x > ~/{place}/session && touch made\n"
    put(home / "bin" / program, text, executable=True)
    workshop.add("Write", "test -f made")
    workshop.ends(0, "--sandbox", engine, agent=f"{home}/bin/{program}; true")
    assert (home / place / "session").exists()
    assert (home / place).stat().st_mode & 0o777 == 0o700


def test_an_agent_with_a_directory_of_its_own_needs_none_in_the_home(
    engine: str, workshop: Workshop, home: Path, tmp_path: Path
) -> None:
    text = "#!/bin/sh\necho x > $CLAUDE_CONFIG_DIR/session && touch made\n"
    put(home / "bin/claude", text, executable=True)
    # No directory can be made there.
    put(home / ".claude", "")
    workshop.add("Write", "test -f made")
    agent, own = f"{home}/bin/claude; true", str(tmp_path / "own")
    workshop.ends(0, "--sandbox", engine, agent=agent, CLAUDE_CONFIG_DIR=own)


@needs_root
def test_an_agent_starts_although_a_directory_in_the_home_may_not_be_looked_at(
    workshop: Workshop, home: Path, tmp_path: Path
) -> None:
    """As after a `sudo` that has made `~/.local/share`."""
    put(home / ".local/share/claude/settings.json", "{}")
    tmp_path.chmod(0o700)
    ctx = workshop.context()
    ctx.env = {**ctx.env, **sandbox.noted(sandbox.Sandbox("nono", str(ctx.git.top)))}
    launch = Launch(("claude",), writable=(".local/share/claude",))

    def writable() -> object:
        box = sandbox.of(confinement.of_agent(ctx, launch, []))
        return box and box.writable

    assert told(writable) == [f"{home}/.local/share/claude"]


COPILOT = """#!/bin/sh
while [ $# -gt 1 ] && [ "$1" != --usage-output-file ]; do shift; done
echo '{"modelMetrics": {"m": {"usage": {"inputTokens": 1000}}}}' > "$2.new" && mv "$2.new" "$2" && touch made
"""


def test_an_agent_may_rename_the_file_of_its_usage_into_place(
    engine: str, workshop: Workshop, home: Path
) -> None:
    """As Copilot 1.0.102 does; it exited with 1 where it could not, and two more agents were paid for."""
    put(home / "bin/copilot", COPILOT, executable=True)
    workshop.add("Write", "test -f made")
    path = f"{home}/bin:{os.environ['PATH']}"
    said = workshop.harness("run", "--agent", "copilot", "--sandbox", engine, PATH=path)
    assert (said.returncode, "1,000 tokens" in said.stdout) == (0, True), said.stdout + said.stderr


def test_a_cloud_is_for_the_agent_that_is_set_to_it(engine: str, workshop: Workshop, home: Path) -> None:
    put(home / ".claude/settings.json", '{"env": {"CLAUDE_CODE_USE_BEDROCK": "1"}}')
    put(home / ".aws/credentials", "a key")
    program = "#!/bin/sh\n(cat ~/.aws/*; printenv AWS_SESSION_TOKEN GH_TOKEN) > made\n"
    put(home / "bin/claude", program, executable=True)
    workshop.add("Read", 'grep "a key" made && grep session made && ! grep hub made')
    env = {"AWS_SESSION_TOKEN": "session", "GH_TOKEN": "hub"}
    said = workshop.ends(0, "--sandbox", engine, agent=f"{home}/bin/claude; true", **env)
    named = "checks do not get AWS_SESSION_TOKEN, GH_TOKEN; to give them: harness run --allow-env AWS_SESSION"
    assert named in said.stdout
    workshop.add("Check", "grep hub made && test -n $GH_TOKEN")
    workshop.ends(0, "--sandbox", engine, "--allow-env", "GH_TOKEN", agent=f"{home}/bin/claude; true", **env)


CONNECTS = "{python} -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 5)'"
SERVES = """{python} -c '
import socket
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname(), 5)
'"""


@pytest.mark.parametrize("network", ["none", *for_release("open", "loopback")])
def test_the_network_of_a_check_is_as_wide_as_the_engine_can(
    each_engine: str, workshop: Workshop, network: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        outside = CONNECTS.format(python=shlex.quote(sys.executable), port=port)
        own = SERVES.format(python=shlex.quote(sys.executable))
        closed = network == "none" or (network == "loopback" and each_engine == "bubblewrap")
        serves = not closed or each_engine == "bubblewrap"
        check = f"test -f made && {'! ' * closed}{outside} && {'' if serves else '! '}{own}"
        # The agent has it in any case.
        workshop.add("Connect", check, do=f"sh {outside} && touch made")
        said = workshop.ends(0, "--sandbox", each_engine, "--network", network)
    assert ("so the network of checks stays open" in said.stdout) == (network == "loopback" and not closed)


def test_docker_is_said_to_be_out_of_reach(workshop: Workshop, home: Path) -> None:
    path = home / ".docker/run/docker.sock"
    path.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        said = workshop("run", "--agent-command", "true", "--dry-run", "--sandbox", "auto").text
        if "bubblewrap" in said:
            assert f"tests may be skipped for it; to allow it: harness run --allow-write {path}" in said


def test_what_needs_the_git_directory_of_the_user_says_what_to_type_instead(
    each_engine: str, workshop: Workshop
) -> None:
    harness = f"{shlex.quote(sys.executable)} -m harness_lib"
    first = workshop.add("Kept", "grep -q done f", "--max-attempts", "1", do="sh echo half > f")
    typed = f"{harness} rescue apply {first}/1 > applied 2>&1; {harness} validate task-002 > checked 2>&1"
    way = "sh -c \"$(sed -n 's/.*Apply it by git: //p' applied)\""
    workshop.add("Other", "test -f checked", "--priority", "P2", do=f"sh {typed}; {way}")

    workshop.run("--sandbox", each_engine)

    assert workshop.sh("show", "main:f") == "half"
    assert "not available in the sandbox" in workshop.sh("show", "main:applied")
    assert "harness show task-002" in workshop.sh("show", "main:checked")


def test_an_agent_reports_and_reads_although_the_list_has_changed_since_it_began(
    each_engine: str, workshop: Workshop, home: Path
) -> None:
    """Landlock knows files, and each change of the list makes another one."""
    (home / ".cache").mkdir()
    workshop.put(".gitignore", ".env\n")
    workshop.put(".env", "a secret\n")
    workshop.commits("Ignore")
    harness = f"{shlex.quote(sys.executable)} -m harness_lib"
    words = ["checkpoint task-001 1/2 half", 'note task-001 "port 80 is taken"', "checkpoint 2/2 whole"]
    typed = "; ".join(f"{harness} {each} >> said 2>&1; echo $? >> codes" for each in words)
    proposed = f"{harness} add Later --validate true >> said 2>&1; echo $? >> codes"
    other = f"until grep -q 'Completed .task-002' {workshop.top}/harness-progress.txt; do sleep 0.05; done"
    looked = "; ".join(
        f"{harness} {verb} > shown 2>&1; echo $? >> codes" for verb in ("check", "show task-002")
    )
    task = workshop.add(
        "Report", "test -f codes", do=f"sh touch ~/.cache/a; {other}; {looked}; {typed}; {proposed}; true"
    )
    began = "until test -e ~/.cache/a; do sleep 0.05; done"
    workshop.add("Another", "test -f other", do=f"sh {began}; echo x > other")

    workshop.ends(0, "-j", "2", "--sandbox", each_engine)

    assert workshop.sh("show", "main:codes").split() == ["0"] * 6, workshop.sh("show", "main:said")
    assert "task-002 [completed] Another" in workshop.sh("show", "main:shown").splitlines()
    done = workshop.task(task)
    assert [each["description"] for each in done["checkpoints"]] == ["half", "whole"]
    assert done["notes"] == ["port 80 is taken"]
    assert "Later" in workshop.harness("add", "--proposed").stdout
