"""`bin/hs` from a bare checkout: an empty home, one command, an answer."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from harness_lib import __version__
from tests.conftest import Harness, for_release
from tests.core.search_paths import without_harness
from tests.launcher.launching import CHECKOUT, run
from tests.loop.servers.openai import OpenAI
from tests.loop.servers.script import ModelServer, say, use
from tests.system.git.gitrepo import put


def test_the_first_command_in_an_empty_home_works(home: Path, tmp_path: Path, shared: dict[str, str]) -> None:
    server = ModelServer(OpenAI, [use("bash", command="echo hello > made"), say("Made.")])
    env = {
        "HOME": str(home),
        "XDG_DATA_HOME": shared["HARNESS_HOME"],
        "PYTHONPATH": str(tmp_path),
        "OPENAI_API_URL": f"{server.address}/v1/chat/completions",
    }
    # A module of the project is never taken for one of ours.
    (tmp_path / "httpx2.py").write_text("raise SystemExit(99)")

    answer = run(CHECKOUT / "bin/hs", "make it", env=env, cwd=tmp_path)
    link = tmp_path / "elsewhere"
    link.symlink_to(CHECKOUT / "bin/hs")
    again = run(link, "version", env=env, cwd=tmp_path)
    server.shutdown()
    server.server_close()

    assert (answer.code, answer.out) == (0, "Made.\n"), answer.err
    assert (tmp_path / "made").read_text() == "hello\n"
    assert [path.name for path in (home / ".harness").iterdir()] == ["sessions"]
    assert again.out.startswith("harness ")
    assert "preparing" not in again.err


def test_the_package_of_a_sandbox_goes_where_the_others_are(
    home: Path, tmp_path: Path, shared: dict[str, str]
) -> None:
    """Whether the trial, a tool of the user or a command needs it: the home of plugins holds none of it."""
    data = tmp_path / "data/harness"
    data.mkdir(parents=True, mode=0o700)
    for made in (Path(shared["HARNESS_HOME"]) / "harness").glob("env-*"):
        (data / made.name).symlink_to(made)
    tool = """#!/bin/sh
[ "$1" = --exec ] && exec echo ran in $HARNESS_HOME
echo '{"name":"mine","description":"Mine","input_schema":{"type":"object","properties":{}}}'
"""
    put(home / ".harness/tools/mine", tool, executable=True)
    server = ModelServer(OpenAI, [use("mine"), use("bash", command="echo ran too"), say("Done.")])
    address = f"{server.address}/v1/chat/completions"
    env = {"HOME": str(home), "XDG_DATA_HOME": str(data.parent), "OPENAI_API_URL": address}

    answer = run(CHECKOUT / "bin/hs", "go", env={**env, "HARNESS_SANDBOX": "auto"}, cwd=tmp_path)
    server.shutdown()
    server.server_close()

    assert (answer.code, answer.out) == (0, "Done.\n"), answer.err
    assert f"ran in {home}/.harness\n" in answer.err
    assert sorted(path.name for path in (home / ".harness").iterdir()) == ["sessions", "tools"]
    assert answer.err.count("preparing") <= 1


def test_what_a_plugin_starts_keeps_its_data_where_harness_does(
    home: Path, tmp_path: Path, shared: dict[str, str]
) -> None:
    """Plugins know HARNESS_HOME, also a default one; set by the user it would move the data there, too."""
    inner = shlex.quote(f"{CHECKOUT}/bin/hs")
    put(home / ".harness/commands/mine", f"#!/bin/sh\nexec {inner} session list\n", executable=True)
    env = {"HOME": str(home), "XDG_DATA_HOME": shared["HARNESS_HOME"]}

    answer = run(CHECKOUT / "bin/hs", "mine", env=env, cwd=tmp_path)

    assert (answer.code, answer.err) == (0, "")
    assert [path.name for path in (home / ".harness").iterdir()] == ["commands"]


def test_without_a_registry_it_says_what_to_do(offline: dict[str, str]) -> None:
    answer = run(CHECKOUT / "bin/hs", "help", env=offline)

    assert answer.code == 7
    assert answer.err.endswith(f"run: {shlex.quote(str(CHECKOUT / 'bin' / 'hs'))} --help\n")


def test_a_run_fetches_its_packages_before_an_agent_is_in_the_sandbox(
    offline: dict[str, str], harness: Harness, tmp_path: Path
) -> None:
    """There they could not be fetched, and each attempt would fail for that."""
    env = {**offline, "HARNESS_SANDBOX": "off", "PATH": f"{tmp_path}:{without_harness()}"}
    (tmp_path / "hs").symlink_to(CHECKOUT / "bin/hs")
    # None are fetched only to see that no provider is ready, also through a link on the PATH.
    for words in ("init", "add It --check=false", "run"):
        harness(*words.split(), env=env)
    assert not (tmp_path / "data/lock").exists()

    env |= {"OPENAI_API_URL": "http://127.0.0.1:9/v1/chat/completions", "HARNESS_PROVIDER": "openai"}
    done = harness("run", "--agent", "hs", env=env)

    assert "no package registry could be reached" in done.err
    assert (done.code, "attempt 1" in done.out) == (7, False)


def test_the_version_needs_no_package(offline: dict[str, str]) -> None:
    for word in ("version", "--version", "-v"):
        answer = run(CHECKOUT / "bin/hs", word, env=offline)
        assert (answer.code, answer.out, answer.err) == (0, f"harness {__version__}\n", "")


@pytest.mark.parametrize("place", ["elsewhere", *for_release("home/.harness", "home/.harness/plugins/pack")])
def test_a_plugin_may_say_another_version(
    home: Path, tmp_path: Path, shared: dict[str, str], place: str
) -> None:
    source = {"home": home, "elsewhere": tmp_path}[place.partition("/")[0]] / place.partition("/")[2]
    command = source / "commands/version"
    put(command, "#!/bin/sh\necho mine\n", executable=True)
    env = {"HOME": str(home), "XDG_DATA_HOME": shared["HARNESS_HOME"]}
    if place == "elsewhere":
        hook = home / ".harness/hooks.d/sources/50-more"
        put(hook, f'#!/bin/sh\necho \'{{"sources": ["{source}"]}}\'\n', executable=True)

    assert run(CHECKOUT / "bin/hs", "version", env=env, cwd=tmp_path).out == "mine\n"


def test_harness_doctor_looks_at_hs_once_in_use(home: Path, tmp_path: Path, shared: dict[str, str]) -> None:
    env = {"HOME": str(home), "XDG_DATA_HOME": shared["HARNESS_HOME"]}
    before = run(CHECKOUT / "bin/harness", "doctor", env={"HOME": str(home), **shared}, cwd=tmp_path)
    run(CHECKOUT / "bin/hs", "help", env=env, cwd=tmp_path)
    key = home / ".harness/.auth.json"
    put(key, "{}")
    key.chmod(0o644)

    after = run(CHECKOUT / "bin/harness", "doctor", env=env, cwd=tmp_path)

    assert "hs: not in use yet" in before.out, before.out
    assert f"warn  hs: {key} can be read by others -> chmod 600 {key}" in after.out, after.out
    assert "ok    hs: no ready provider found" in after.out
