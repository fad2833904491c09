"""The first run of `bin/harness` makes what it runs with, once and completely, or says what it lacks."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import for_release
from tests.launcher.launching import CHECKOUT, NONO, REAL_ENVIRON, run
from tests.system.git.gitrepo import put
from tests.waiting import until

# An installer that has begun and does not come to an end; its name is looked for first.
ENDLESS_UV = """\
#!/bin/sh
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/rpds"
echo "$$" >"$BEGUN.new"
mv "$BEGUN.new" "$BEGUN"
exec sleep 600
"""
# One that copies what another one has installed, once it may.
COPYING_UV = """\
#!/bin/sh
while [ "$1" != --target ]; do shift; done
: >"$BEGUN.again"
until [ -e "$BEGUN.go" ]; do sleep 0.02; done
cp -R "$INSTALLED/." "$2"
"""


class TestFirstRun:
    def test_after_a_killed_run_two_at_once_make_one_environment_and_both_run(
        self, launcher: Path, shared: dict[str, str], tmp_path: Path
    ) -> None:
        data, begun = tmp_path / "data", tmp_path / "begun"
        uv = put(tmp_path / "tools/uv", ENDLESS_UV, executable=True)
        packages = Path(run(launcher, env=shared).json["modules"][-1]).parents[1]
        own = {"BEGUN": str(begun), "INSTALLED": str(packages), "HARNESS_HOME": str(data)}
        env = {**REAL_ENVIRON, **own, "PATH": f"{uv.parent}:{os.environ['PATH']}"}
        process = subprocess.Popen([launcher], env=env, stderr=subprocess.DEVNULL)
        until("an installer has begun", begun.exists)
        process.kill()
        process.wait()
        assert list(data.glob("part-*"))
        assert not list(data.glob("env-*"))

        put(uv, COPYING_UV)
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL

        def start(word: str) -> subprocess.Popen[str]:
            command = [str(launcher), word]
            return subprocess.Popen(command, env=env, stdin=nothing, stdout=pipe, stderr=pipe, text=True)

        one = start("one")
        until("another has begun", (tmp_path / "begun.again").exists)
        two = start("two")
        assert two.stderr
        assert two.stderr.readline().startswith("harness: waiting for another process")
        (tmp_path / "begun.go").touch()
        ended = [(*process.communicate(timeout=280), process.returncode) for process in (one, two)]
        os.kill(int(begun.read_text()), signal.SIGKILL)
        assert [code for _, _, code in ended] == [9, 9], ended
        assert [json.loads(out)["argv"] for out, _, _ in ended] == [["one"], ["two"]]
        talk = "".join(err for _, err, _ in ended)
        assert talk.count("harness: preparing its own Python environment (once) ...") == 1
        assert data.stat().st_mode & 0o777 == 0o700
        assert not list(data.glob("part-*"))
        (made,) = data.glob("env-*")

        (made / "ready").unlink()
        shutil.rmtree(made / "packages/rpds")
        again = run(launcher, env=env)
        assert again.code == 9, again.err
        assert "preparing" in again.err

    @pytest.mark.release
    def test_a_python_without_pip_uses_its_venv(self, launcher: Path, tmp_path: Path) -> None:
        bare = bare_python(tmp_path)
        env = {"HARNESS_HOME": str(tmp_path / "data"), "PATH": path_without_uv(bare)}
        done = run(launcher, env=env)
        assert done.code == 9, done.err

    def test_a_python_without_installers_is_told_of_one(self, launcher: Path, tmp_path: Path) -> None:
        bare = bare_python(tmp_path)
        (packages,) = bare.parent.glob("lib/python*/site-packages")
        (packages / "no_venv.pth").write_text("import sys; sys.modules['venv'] = None\n")
        env = {"HARNESS_HOME": str(tmp_path / "data"), "PATH": path_without_uv(bare)}
        done = run(launcher, env=env)
        assert done.code == 7
        assert "python3-venv" in done.err
        assert not list((tmp_path / "data").glob("env-*"))

    def test_the_package_of_a_sandbox_is_asked_for_once_an_hour(
        self, tmp_path: Path, offline: dict[str, str]
    ) -> None:
        asked = tmp_path / "asked"
        put(tmp_path / "tools/uv", f"#!/bin/sh\nenv >> {asked}\nexit 1\n", executable=True)
        env = {**offline, "PATH": f"{tmp_path}/tools:{os.environ['PATH']}"}
        words = (sys.executable, "-I", "-S", "-c", NONO, CHECKOUT)

        assert "no package registry could be reached" in run(*words, env=env).err
        seen = asked.read_text()
        assert seen.count("UV_HTTP_RETRIES=0") == seen.count("PIP_RETRIES=0") == 1
        said = run(*words, env=env).err
        assert "could not be fetched 0 minutes ago" in said
        assert asked.read_text() == seen
        (remembered,) = (tmp_path / "data").glob("unfetched-*")
        os.utime(remembered, (0, 0))
        run(*words, env=env)
        assert asked.read_text().count("UV_HTTP_RETRIES=0") == 2


def bare_python(tmp_path: Path) -> Path:
    """Make a Python that has no pip; return the directory it is in."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    return tmp_path / "bare/bin"


def path_without_uv(first: Path) -> str:
    folders = [folder for folder in os.environ["PATH"].split(":") if not Path(folder, "uv").exists()]
    return ":".join([str(first), *folders])


class TestOffline:
    @pytest.fixture(params=[{}, *for_release({"PIP_NO_INDEX": "1"})], ids=["registry down", "no registry"])
    def env(self, request: pytest.FixtureRequest, offline: dict[str, str]) -> dict[str, str]:
        return {**offline, **request.param}

    def test_one_error_with_what_to_type(self, launcher: Path, env: dict[str, str], tmp_path: Path) -> None:
        done = run(launcher, "status", env=env)
        assert done.code == 7
        assert done.out == ""
        _, error = done.err.splitlines()
        assert error.startswith("harness: The Python packages that harness needs could not be installed")
        assert "no package registry could be reached" in error
        assert error.endswith(f"run: {shlex.quote(str(launcher))} --help")
        assert [entry.name for entry in (tmp_path / "data").iterdir()] == ["lock"]

    @pytest.mark.parametrize("error", ["[Errno 28] Voll", *for_release("Quota (os error 122)")])
    def test_a_disk_that_fills_up_is_no_missing_registry(
        self, launcher: Path, offline: dict[str, str], tmp_path: Path, error: str
    ) -> None:
        uv = tmp_path / "programs/uv"
        put(uv, f"#!/bin/sh\necho 'ERROR: Exception:' '{error}' >&2\nexit 1\n", executable=True)

        done = run(launcher, "status", env={**offline, "PATH": f"{uv.parent}:{REAL_ENVIRON['PATH']}"})

        assert done.code == 7
        assert "No space left on device. Free space or allow writing there, or set HARNESS_HOME." in done.err
        assert "registry" not in done.err

    def test_doctor_works_and_says_what_is_missing(self, offline: dict[str, str], tmp_path: Path) -> None:
        done = run(CHECKOUT / "bin/harness", "doctor", "--json", env=offline, cwd=tmp_path)
        assert done.code == 1, done.err
        assert "no package registry could be reached" in done.err
        findings = {each["what"]: each for each in json.loads(done.out)["found"]}
        lacking = "not installed: filelock, jinja2, jsonschema, markdown-it-py, rich, tomlkit"
        assert findings[lacking]["cure"].endswith("harness --version")
        assert any("git version" in title for title in findings)

    def test_with_json_the_error_is_one_object_too(self, launcher: Path, offline: dict[str, str]) -> None:
        reply = json.loads(run(launcher, "status", "--json", env={**offline, "PIP_NO_INDEX": "1"}).out)
        assert (reply["ok"], reply["verb"], reply["exit"]) == (False, "status", 7)
        assert reply["error"]["kind"] == "ENV_SETUP"

    def test_once_made_no_network_is_needed(
        self, launcher: Path, shared: dict[str, str], offline: dict[str, str]
    ) -> None:
        assert run(launcher, env=shared).code == 9
        done = run(launcher, env={**offline, **shared})
        assert (done.code, done.err) == (9, "talk\n")
