"""Commands of `hs`: credentials, sessions, and what the doctor finds."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness_lib.loop import runtime
from harness_lib.system.install import launcher
from tests.conftest import CHECKOUT
from tests.hs.person import person
from tests.loop.conftest import CHAT, Go, Hs, Serve, bodies, session_of
from tests.loop.servers.script import bash, say, use
from tests.loop.source_files import at_home, write, write_program, write_provider, write_script
from tests.run_to_end import run_to_end

KEY = "sk-0123456789"


def test_a_key_is_asked_for_kept_and_used(hs: Hs, serve: Serve, project: Path) -> None:
    with person("auth", "set", "groq", cwd=project, env={}) as someone:
        someone.sees("Key for")
        someone.types(f"{KEY}\n")
        assert someone.leaves() == 0

    path = at_home(".auth.json")
    assert KEY not in someone.raw
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_text()) == {"groq": [{"type": "api_key", "key": KEY}]}
    assert hs("auth", "list").out == "groq [0] type=api_key key=sk-0...6789\n"

    server = serve(CHAT, say("Hello."))
    write_provider("groq", f"{server.address}{CHAT.path}", "auth_env=GROQ_API_KEY")
    assert hs("hello").out == "Hello.\n"
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"

    assert hs("auth", "rm", "groq", "0").code == 0
    assert hs("auth", "list").out == ""


def test_who_ends_the_input_in_the_place_of_a_key_is_told_that_none_was_typed(project: Path) -> None:
    with person("auth", "set", "groq", cwd=project, env={}) as someone:
        someone.sees("Key for")
        someone.types("\x04")
        someone.sees("No credential for groq: no key was typed.")
        assert someone.leaves() == 7

    assert not at_home(".auth.json").exists()


def test_a_package_that_is_missing_is_named(tmp_path: Path) -> None:
    """That of `hs acp` has no version for Python 3.15."""
    (tmp_path / "acp.py").write_text("raise ModuleNotFoundError('gone', name='acp')\n")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from harness_lib.hs.main import entry; entry()"
    )

    done = run_to_end([sys.executable, "-c", code, "acp"], stdin="")

    said = f"the package acp is missing. Install it: {launcher.adding('hs')} (Python 3.14 or older"
    assert (done.returncode, said in done.stderr) == (7, True), done.stderr


def test_a_new_provider_is_one_file(hs: Hs, tmp_path: Path) -> None:
    """It is put into a copy of the bundled packs; the page for contributors says where."""
    bundled = shutil.copytree(runtime.BUNDLED, tmp_path / "bundled")
    conf = "protocol=openai\ndescription=Acme\nmodel=big-one\nurl=http://127.0.0.1:9/v1\nauth_env=ACME_KEY\n"
    (bundled / "plugins/openai/providers/acme.conf").write_text(conf)
    env = {"HARNESS_ROOT": str(bundled)}

    assert hs("provider", "acme", "--defaults", env=env).out == "model=big-one\n"
    assert hs("provider", "acme", "--ready", env=env).code != 0
    assert hs("provider", "acme", "--ready", env={**env, "ACME_KEY": KEY}).code == 0
    assert "Acme" in hs("help", env=env).out
    said = "A new provider of `hs` is one file: `harness_lib/loop/bundled/plugins/PACK/providers/NAME.conf`"
    assert said in (CHECKOUT / "CONTRIBUTING.md").read_text()


@pytest.mark.parametrize(("verb", "used"), [("set", ""), ("set", "anthropic"), ("login", "anthropic")])
def test_without_a_terminal_no_key_is_asked_for(hs: Hs, verb: str, used: str) -> None:
    """Also of a provider that is not in use; the packs of the others are left out of a run."""
    done = hs("auth", verb, "groq", env={"HARNESS_PROVIDER": used}, session=True)

    assert done.code == 7
    assert "There is no provider" not in done.err
    assert "no terminal" in done.err
    assert not at_home(".auth.json").exists()


def test_a_hook_of_home_gives_the_credential(hs: Hs) -> None:
    vault = 'echo "{\\"type\\":\\"api_key\\",\\"key\\":\\"$HARNESS_AUTH_PROVIDER-key\\"}"'
    write_script("hooks.d/auth-set/10-vault", vault)

    for _ in range(2):
        assert hs("auth", "set", "groq").code == 0
        assert hs("auth", "list", "groq").out == "groq [0] type=api_key key=****\n"
    write_script("hooks.d/auth-set/50-default", "echo '{}'")
    assert "the stage auth-set gave none with a type" in hs("auth", "set", "openai").err


def test_one_of_several_credentials_goes_by_its_number(hs: Hs, home: Path) -> None:
    keys = [{"type": "api_key", "key": key} for key in ("one", "two", "three")]
    path = write(".auth.json", json.dumps({"groq": keys}))

    assert hs("auth", "rm", "groq", "1", "--local", cwd=home).code == 2, "there the file is that of home"
    assert hs("auth", "rm", "groq", "1").code == 0

    assert json.loads(path.read_text()) == {"groq": [keys[0], keys[2]]}


def test_whose_key_no_provider_looks_for_is_told_before_it_is_typed(project: Path) -> None:
    """Plugins may look for a key of their own."""
    with person("auth", "set", "antropic", cwd=project, env={}) as someone:
        someone.sees("There is no provider antropic (hs help); the key is kept for plugins of that name.")
        someone.sees("Key for")
        someone.types(f"{KEY}\n")
        assert someone.leaves() == 0

    assert list(json.loads(at_home(".auth.json").read_text())) == ["antropic"]


def test_a_broken_file_of_credentials_is_not_overwritten(hs: Hs) -> None:
    path = write(".auth.json", "{half")
    assert hs("auth", "rm", "groq", "0").code == 3
    assert path.read_text() == "{half"

    path.write_text('{"groq": "no list"}')
    assert hs("auth", "rm", "groq", "0").code == 0
    assert path.read_text() == '{"groq": "no list"}'


def test_a_fork_goes_on_from_a_message_and_leaves_the_original_alone(hs: Hs, go: Go) -> None:
    server, _ = go(say("Blue."), say("Green."), say("Red."), words=("a colour",))
    first = session_of()
    hs(first.name, "another")
    write(first / "native/0002.json", "{}")

    fork = hs("session", "fork", first.name, "2").out.strip()
    conf = (first.parent / fork / "session.conf").read_text()
    assert f"forked={first.name}\n" in conf
    assert [path.name for path in (first.parent / fork / "native").iterdir()] == ["0002.json"]
    answer = hs(fork, "a third")

    assert answer.out == "Red.\n", answer.err
    sent = str(server.requests[2])
    assert "Blue." in sent
    assert "Green." not in sent
    assert len(bodies(first)) == 4
    assert hs("session", "fork", first.name, "9").code == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        *(
            (("session", word), f"hs session {word} wants the ID")
            for word in ("show", "fork", "export", "rm")
        ),
        (("session", "show", ""), "The name of the session is empty."),
        (("hook", "done/99-none"), "There is no hook done/99-none. hs "),
        (("tool", "none", "--schema"), "There is no tool none. hs "),
        (("provider", "none", "--ready"), "There is no provider none. hs "),
        # With a word too many it is not said that there is no such plugin.
        (("hook", "done/10-save", "more"), "hs hook wants "),
        (("tool", "bash", "more", "--schema"), "hs tool wants "),
    ],
)
def test_what_is_wrong_with_the_words_of_a_command_is_said(hs: Hs, words: tuple[str, ...], said: str) -> None:
    answer = hs(*words)

    assert answer.code == 2
    assert answer.err.startswith(f"hs: {said}")


def test_a_session_whose_directory_is_gone_goes_on_in_a_copy_only(
    hs: Hs, serve: Serve, project: Path
) -> None:
    """Its commands would run in whatever project the user is in."""
    serve(CHAT, say("Blue."), say("Green."))
    (project / "old").mkdir()
    hs("a colour", cwd=project / "old")
    (name,) = hs("session", "list").out.split()
    (project / "old").rmdir()

    refused = [hs(*words) for words in ((name, "and now?"), ("--resume", name, "x"), ("resume", "x"))]
    copy = hs("session", "fork", name).out.strip()

    for answer in refused:
        assert answer.code == 8
        assert f"works in {project / 'old'}, which is not there any more" in answer.err
        assert f"hs session fork {name}" in answer.err
    assert hs(copy, "and now?").out == "Green.\n"
    assert f"cwd={project}\n" in hs("session", "show", copy).out


def test_show_sums_what_was_spent_and_export_tells_all(go: Go, hs: Hs) -> None:
    go(bash("echo hello"), say("Done."), words=("RUN it", "--model", "nobody-knows-its-price"))
    name = session_of().name

    shown = hs("session", "show", name).out
    text = hs("session", "export", name).out
    whole = json.loads(hs("session", "export", name, "--json").out)
    assert json.loads(hs("session", "export", "--json", name).out) == whole

    assert "tokens_in=20\ntokens_out=10\ncost=unknown\n" in shown
    assert all(words in text for words in ("RUN it", "hello", "Done."))
    roles = [message["role"] for message in whole["messages"]]
    assert roles == ["user", "assistant", "tool_result", "assistant"]


def test_rm_takes_the_session_and_its_subagents_but_none_in_use(go: Go, hs: Hs) -> None:
    deeper = (use("agent", prompt="deeper"), say("Deep."))
    go(use("agent", prompt="help"), *deeper, say("Helped."), say("Done."), words=("RUN it",))
    store = at_home("sessions")
    (name,) = hs("session", "list").out.split()
    holder = "import fcntl,sys;f=open(sys.argv[1]);fcntl.flock(f,2);print('held',flush=True);input()"
    lock = str(store / name / ".lock")
    with subprocess.Popen(
        [sys.executable, "-c", holder, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as held:
        assert held.stdout
        held.stdout.readline()
        refused = hs("session", "rm", name)
        held.communicate(b"\n")

    assert refused.code == 5
    assert len(list(store.iterdir())) == 3
    assert hs("session", "rm", name).code == 0
    assert list(store.iterdir()) == []
    (store / "mine/notes").mkdir(parents=True)
    assert hs("session", "rm", "mine").code == 8
    assert (store / "mine/notes").is_dir()


@pytest.mark.parametrize("command", ["session", "auth", "trust", "tools", "doctor", "help"])
def test_a_command_that_is_asked_for_help_says_its_line_and_does_nothing(hs: Hs, command: str) -> None:
    asked = hs(command, "--help")
    assert (asked.code, asked.err) == (0, "")
    line = next(line for line in hs("help").out.splitlines() if line.startswith(f"  {command} "))
    assert command == "help" or line.split(maxsplit=1)[1] in asked.out


READY = {"OPENAI_API_URL": "http://127.0.0.1:9/v1/chat/completions", "HARNESS_MODEL": "m"}


def test_where_all_is_well_it_says_so_and_without_a_provider_how_to_get_one(hs: Hs) -> None:
    answer = hs("doctor", env=READY)
    assert answer.code == 0, answer.out
    assert "the provider openai can be asked, model m" in answer.out
    assert "none of them broken" in answer.out
    assert "->" not in answer.out

    answer = hs("doctor")
    assert (answer.code, "no ready provider" in answer.out) == (1, True)
    assert "-> hs auth set" in answer.out


# What is spoilt below home, by which content, and what the doctor says of it. A program begins with "#!".
TROUBLES = [
    ("tools/odd", "#!/bin/sh\necho nothing\n", "tools/odd is left out: it prints no valid", "--schema"),
    ("hooks.d/done/odd", "cat\n", "hooks.d/done/odd is not a plugin: it is not executable", "chmod +x "),
    (".auth.json", "{}", ".auth.json can be read by others", "chmod 600 "),
    ("settings.conf", "approve=perhaps\n", "approve=perhaps must be one of auto, ask,", "settings.conf"),
    ("plugins/a/settings.conf", "aprove=ask\n", "there is no setting aprove", "did you mean approve?"),
    (
        "providers/ours.conf", "protocol=openai\nauth-env=KEY\nheader.x-a=b\ncontext=9\n",
        "ours.conf: there is no setting auth-env", "did you mean auth_env?",
    ),
    (
        "models.conf", "# ours\nours- context=1000 pricein=3\n",
        "models.conf: there is no setting pricein", "did you mean price_in?",
    ),
    (
        "settings.json", '{"permissions": {"alow": ["Bash(git status:*)"]}}',
        "settings.json: there is no setting alow", "did you mean allow?",
    ),
    (
        "tools/vague", '#!/bin/sh\necho \'{"name":"vague","description":"Do it"}\'\n',
        "tools/vague has no input_schema", 'add "input_schema"',
    ),
    (
        "hooks.d/tool_gates/10-look", "#!/bin/sh\ncat\n",
        "never runs: there is no stage tool_gates", "did you mean tool_gate?",
    ),
    (
        "hooks.d/tool_gate/10-bash", "#!/bin/sh\ngrep bash || exit 3\n",
        "tool_gate/10-bash exited 3, which denies", "repair it, and try: echo",
    ),
    (
        "hooks.d/tool_gate/10-no", "#!/bin/sh\ncat >/dev/null\n",
        "tool_gate/10-no prints no JSON object, which denies", "| ",
    ),
    (
        "hooks.d/done/50-windows", "#!/bin/sh\r\ncat\r\n",
        "done/50-windows cannot be started: its first line ends in a carriage return", "correct its first",
    ),
    ("mcp.json", '{"mcpServers": {"files": {}},}', "mcp.json is not JSON: ", "repair "),
    ("plugins/a/mcp.json", '{"servers": {}}', 'mcp.json is left out: it is no {"mcpServers"', "repair "),
    (
        "plugins/b/mcp.json", '{"mcpServers": {"files": {"args": ["."]}}}',
        "the MCP server files in ", "repair ",
    ),
    (
        "plugins/c/mcp.json", '{"mcpServers": {"files": {"command": "no-such-server"}}}',
        "there is no command no-such-server", "install no-such-server",
    ),
    (
        "plugins/d/mcp.json", '{"mcpServers": {"keyless": {"command": "sh", "args": ["${NOT_SET}"]}}}',
        "the MCP server keyless wants NOT_SET, which is not set", "set it, or ",
    ),
    ("skills/one/SKILL.md", "---\nname: one\n---\nDo it.\n", "skill one has no description", "description: "),
]  # fmt: skip


def findings(hs: Hs) -> list[tuple[str, str]]:
    """Return what the doctor finds, each with its cure."""
    answer = hs("doctor", "--json", env=READY)
    found = [(each["what"], each["cure"]) for each in json.loads(answer.out) if each["cure"]]
    assert answer.code == bool(found)
    return found


def test_a_permission_hook_without_a_first_line_is_asked_as_in_a_run(hs: Hs) -> None:
    write_program("hooks.d/tool_gate/10-look", "cat\n")
    assert findings(hs) == []


def test_each_trouble_is_found_once_with_its_cure(hs: Hs, project: Path) -> None:
    for name, text, _, _ in TROUBLES:
        write(name, text, 0o755 if text.startswith("#!") else 0o644)
    # A hook may go to a stage of its own.
    write_script("hooks.d/done/10-more", "echo review >&2; cat")
    write_script("hooks.d/review/10-look", "cat")
    write_script(project / ".harness/tools/odd", "touch ran")

    found = findings(hs)

    for _, _, trouble, cure in [*TROUBLES, ("", "", ".harness are not used", "hs trust")]:
        (told,) = [each for what, each in found if trouble in what]
        assert cure in told
    assert len(found) == len(TROUBLES) + 1
    assert not (project / "ran").exists()


def test_rules_that_cannot_be_understood_are_a_trouble(hs: Hs) -> None:
    write("settings.json", '{"permissions": {"deny": "Bash"}}')

    ((what, cure),) = findings(hs)
    assert "permissions.deny must be a list of rules, so no call runs" in what
    assert cure == "repair it"


def test_an_empty_home_is_the_users_and_not_the_root_directory(hs: Hs) -> None:
    mine = pwd.getpwuid(os.getuid()).pw_dir
    assert hs("session", "dir", env={"HOME": ""}).out == hs("session", "dir", env={"HOME": mine}).out
