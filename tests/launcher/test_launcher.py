"""`bin/harness` from a bare checkout makes what it runs with, once, safely, and passes everything through.

Real installs from the package registry that pip is configured for; most tests share one data directory.
The command line is a small stand-in that shows what it was started with: this is about the launcher.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]

# Taken before the guard of conftest.py replaces it: pip's own configuration says where the registry is.
REAL_ENVIRON = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("CLAUDE", "CODEX", "GEMINI", "HARNESS", "PYTHON"))
}

STAND_IN = """\
import json, os, sys

def entry():
    import filelock, jsonschema, rich, rpds
    print(json.dumps({
        "argv": sys.argv[1:],
        "path": sys.path,
        "stdin": sys.stdin.read(),
        "cwd": os.getcwd(),
        "pid": os.getpid(),
        "modules": [module.__file__ for module in (json, filelock, jsonschema, rich, rpds)],
    }))
    print("talk", file=sys.stderr)
    return 9
"""

# An installer that has begun and does not come to an end; its name is looked for first.
ENDLESS_UV = """\
#!/bin/sh
while [ "$1" != --target ]; do shift; done
mkdir -p "$2/rich"
echo "$$" >"$BEGUN.new"
mv "$BEGUN.new" "$BEGUN"
exec sleep 600
"""


@dataclass(frozen=True)
class Run:
    """What one run of the launcher left behind."""

    code: int
    out: str
    err: str

    @property
    def seen(self) -> dict[str, Any]:
        """What the stand-in was started with."""
        seen = json.loads(self.out)
        assert isinstance(seen, dict)
        return seen


def run(
    *command: str | Path,
    env: Mapping[str, str],
    cwd: Path | None = None,
    stdin: str = "",
) -> Run:
    """Run a command to its end with `env` on top of the real environment."""
    done = subprocess.run(
        [str(word) for word in command],
        env={**REAL_ENVIRON, **env},
        cwd=cwd,
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=110,
        check=False,
    )
    return Run(done.returncode, done.stdout, done.stderr)


def listing(folder: Path) -> list[tuple[str, int]]:
    return sorted((str(path), path.lstat().st_mtime_ns) for path in folder.rglob("*"))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a copy of the checkout whose command line is the stand-in, in a path with a space."""
    copy = tmp_path / "check out"
    shutil.copytree(CHECKOUT / "bin", copy / "bin")
    ignored = shutil.ignore_patterns("__pycache__", "cli")
    shutil.copytree(CHECKOUT / "harness_lib", copy / "harness_lib", ignore=ignored)
    (copy / "harness_lib" / "cli").mkdir()
    (copy / "harness_lib" / "cli" / "__init__.py").touch()
    (copy / "harness_lib" / "cli" / "main.py").write_text(STAND_IN, encoding="utf-8")
    return copy


@pytest.fixture
def launcher(checkout: Path) -> Path:
    return checkout / "bin" / "harness"


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the environment of one data directory for all tests, of all xdist workers: that it must bear."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    return {"HARNESS_HOME": str(base / "shared-harness-home")}


@pytest.fixture
def offline(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which every registry and every cache is out of reach."""
    return {
        "HARNESS_HOME": str(tmp_path / "data"),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_FIND_LINKS": "",
        "PIP_EXTRA_INDEX_URL": "",
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
        "PIP_RETRIES": "0",
        "PIP_CACHE_DIR": str(tmp_path / "pip-cache"),
        "UV_OFFLINE": "1",
        "UV_CACHE_DIR": str(tmp_path / "uv-cache"),
    }


class TestFirstRun:
    def test_two_at_once_make_one_environment_and_both_run(self, launcher: Path, tmp_path: Path) -> None:
        data = tmp_path / "data"
        both = [
            subprocess.Popen(
                [launcher, name],
                env={**REAL_ENVIRON, "HARNESS_HOME": str(data)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
            )
            for name in ("one", "two")
        ]
        ended = [(*process.communicate(timeout=110), process.returncode) for process in both]
        assert [code for _, _, code in ended] == [9, 9], ended
        assert [json.loads(out)["argv"] for out, _, _ in ended] == [["one"], ["two"]]
        talk = "".join(err for _, err, _ in ended)
        assert talk.count("harness: preparing its own Python environment (once) ...") == 1
        assert data.stat().st_mode & 0o777 == 0o700
        assert len(list(data.glob("env-*"))) == 1
        assert not list(data.glob("part-*"))

    def test_a_killed_run_leaves_nothing_that_looks_ready_and_the_next_one_starts_over(
        self, launcher: Path, tmp_path: Path
    ) -> None:
        data, begun = tmp_path / "data", tmp_path / "begun"
        tools = tmp_path / "tools"
        tools.mkdir()
        (tools / "uv").write_text(ENDLESS_UV, encoding="utf-8")
        (tools / "uv").chmod(0o755)
        env = {
            **REAL_ENVIRON,
            "HARNESS_HOME": str(data),
            "BEGUN": str(begun),
            "PATH": f"{tools}:{os.environ['PATH']}",
        }
        process = subprocess.Popen([launcher], env=env, stderr=subprocess.DEVNULL)
        while not begun.exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
        process.wait()
        assert list(data.glob("part-*"))
        assert not list(data.glob("env-*"))

        again = run(launcher, env={"HARNESS_HOME": str(data)})
        os.kill(int(begun.read_text(encoding="utf-8")), signal.SIGKILL)
        assert again.code == 9, again.err
        assert not list(data.glob("part-*"))

    def test_an_environment_whose_marker_is_gone_is_made_again(
        self, launcher: Path, shared: dict[str, str], tmp_path: Path
    ) -> None:
        assert run(launcher, env=shared).code == 9
        data = tmp_path / "data"
        shutil.copytree(shared["HARNESS_HOME"], data, ignore=shutil.ignore_patterns("part-*"))
        (env,) = data.glob("env-*")
        (env / "ready").unlink()
        shutil.rmtree(env / "packages" / "rich")
        again = run(launcher, env={"HARNESS_HOME": str(data)})
        assert again.code == 9, again.err
        assert "preparing" in again.err

    def test_a_python_without_pip_uses_its_venv(self, launcher: Path, tmp_path: Path) -> None:
        bare = bare_python(tmp_path)
        env = {"HARNESS_HOME": str(tmp_path / "data"), "PATH": path_without_uv(bare)}
        done = run(launcher, env=env)
        assert done.code == 9, done.err

    def test_a_python_without_any_installer_is_told_what_to_install(
        self, launcher: Path, tmp_path: Path
    ) -> None:
        bare = bare_python(tmp_path)
        (packages,) = bare.parent.glob("lib/python*/site-packages")
        (packages / "no_venv.pth").write_text("import sys; sys.modules['venv'] = None\n", encoding="utf-8")
        env = {"HARNESS_HOME": str(tmp_path / "data"), "PATH": path_without_uv(bare)}
        done = run(launcher, env=env)
        assert done.code == 7
        assert "python3-venv" in done.err
        assert not list((tmp_path / "data").glob("env-*"))


def bare_python(tmp_path: Path) -> Path:
    """Make a Python that has no pip; return the directory it is in."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    return tmp_path / "bare" / "bin"


def path_without_uv(first: Path) -> str:
    folders = [folder for folder in os.environ["PATH"].split(":") if not Path(folder, "uv").exists()]
    return ":".join([str(first), *folders])


class TestOffline:
    @pytest.fixture(params=[{}, {"PIP_NO_INDEX": "1"}], ids=["registry down", "no registry"])
    def env(self, request: pytest.FixtureRequest, offline: dict[str, str]) -> dict[str, str]:
        return {**offline, **request.param}

    def test_one_clear_error_with_the_command_for_later(
        self, launcher: Path, env: dict[str, str], tmp_path: Path
    ) -> None:
        done = run(launcher, "status", env=env)
        assert done.code == 7
        assert done.out == ""
        _, error = done.err.splitlines()
        assert error.startswith("harness: The Python packages that harness needs could not be installed")
        assert error.endswith(f"run: {shlex.quote(str(launcher))} --version")
        assert [entry.name for entry in (tmp_path / "data").iterdir()] == ["lock"]

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


class TestDataDirectory:
    def test_a_symlink_is_refused(self, launcher: Path, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "data").symlink_to(tmp_path / "elsewhere")
        self.refused(launcher, tmp_path / "data", "is a symbolic link")

    def test_one_that_others_can_write_is_refused(self, launcher: Path, tmp_path: Path) -> None:
        (tmp_path / "data").mkdir()
        (tmp_path / "data").chmod(0o777)
        self.refused(launcher, tmp_path / "data", "can be written by other users")

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
    def test_one_of_another_user_is_refused(self, launcher: Path, tmp_path: Path) -> None:
        (tmp_path / "data").mkdir()
        os.chown(tmp_path / "data", 65534, 65534)
        self.refused(launcher, tmp_path / "data", "belongs to another user")

    def test_a_relative_one_is_refused(self, launcher: Path, tmp_path: Path) -> None:
        """It would lie in the project."""
        self.refused(launcher, Path("data"), "is not an absolute path")
        assert not (tmp_path / "data").exists()

    def refused(self, launcher: Path, data: Path, why: str) -> None:
        done = run(launcher, env={"HARNESS_HOME": str(data)})
        assert (done.code, done.out) == (7, "")
        assert why in done.err
        assert len(done.err.splitlines()) == 1

    @pytest.mark.parametrize(
        ("env", "expected"),
        [
            ({"XDG_DATA_HOME": "{home}/data"}, "data/harness"),
            ({"XDG_DATA_HOME": "relative"}, ".local/share/harness"),
            ({"XDG_DATA_HOME": ""}, ".local/share/harness"),
        ],
    )
    def test_without_harness_home_it_is_in_the_users_data(
        self,
        launcher: Path,
        offline: dict[str, str],
        tmp_path: Path,
        env: dict[str, str],
        expected: str,
    ) -> None:
        home = tmp_path / "person"
        home.mkdir()
        own = {name: value.format(home=home) for name, value in env.items()}
        run(launcher, env={**offline, "PIP_NO_INDEX": "1", "HARNESS_HOME": "", "HOME": str(home), **own})
        assert (home / expected / "lock").exists()


class TestPassingThrough:
    def test_arguments_stdin_stderr_exit_code_and_directory(
        self, launcher: Path, shared: dict[str, str], tmp_path: Path
    ) -> None:
        words = ["a b", "", "two\nlines", "--flag=$HOME `id` *", "ünï", "'\"\\"]
        done = run(launcher, *words, env=shared, cwd=tmp_path, stdin="sent\n")
        assert done.code == 9
        assert done.seen["argv"] == words
        assert done.seen["stdin"] == "sent\n"
        assert done.seen["cwd"] == str(tmp_path.resolve())
        assert done.err.endswith("talk\n")

    def test_it_stays_one_process(self, launcher: Path, shared: dict[str, str]) -> None:
        """A session belongs to the process that started us; a shell in between would be in the way."""
        process = subprocess.Popen(
            [launcher],
            env={**REAL_ENVIRON, **shared},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        out, _ = process.communicate(timeout=110)
        # A version manager may stand between sh and Python, but as an exec as well.
        assert json.loads(out)["pid"] == process.pid

    def test_the_project_and_pythonpath_are_not_on_the_path(
        self, launcher: Path, shared: dict[str, str], tmp_path: Path
    ) -> None:
        hostile = tmp_path / "hostile"
        for module in ("json", "rich", "harness_lib", "sitecustomize", "zlib"):
            (hostile / module).mkdir(parents=True)
            (hostile / module / "__init__.py").write_text("raise SystemExit('hijacked')\n", encoding="utf-8")
        env = {**shared, "PYTHONPATH": f"{hostile}:", "PYTHONSTARTUP": str(hostile / "json/__init__.py")}
        done = run(launcher, env=env, cwd=hostile)
        assert done.code == 9, done.err
        assert not [entry for entry in done.seen["path"] if entry in ("", ".") or "hostile" in entry]
        private = [module for module in done.seen["modules"] if shared["HARNESS_HOME"] in module]
        assert len(private) == 4

    def test_a_link_to_a_link_finds_the_checkout(
        self, launcher: Path, shared: dict[str, str], tmp_path: Path
    ) -> None:
        (tmp_path / "one").mkdir()
        (tmp_path / "one" / "link").symlink_to(os.path.relpath(launcher, tmp_path / "one"))
        (tmp_path / "harness").symlink_to("one/link")
        done = run("harness", "x", env={**shared, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
        assert done.seen["argv"] == ["x"]

    def test_nothing_is_written_into_the_checkout(
        self, checkout: Path, launcher: Path, shared: dict[str, str]
    ) -> None:
        before = listing(checkout)
        assert run(launcher, env=shared).code == 9
        assert run(launcher, env=shared).code == 9
        assert listing(checkout) == before
        assert list(Path(shared["HARNESS_HOME"], "pycache").rglob("main.*.pyc"))


def old_pythons() -> Iterator[str]:
    """Yield Pythons before 3.10 on this machine, as version managers and the PATH have them."""
    names = ["python2.7", *(f"python3.{minor}" for minor in range(6, 10))]
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    for name in names:
        for candidate in [*sorted(versions.glob(f"*/bin/{name}")), shutil.which(name)]:
            if (
                candidate
                and subprocess.run([candidate, "-c", ""], capture_output=True, check=False).returncode == 0
            ):
                yield str(candidate)
                break


@pytest.mark.parametrize("python", list(old_pythons()) or [pytest.param("", marks=pytest.mark.skip("none"))])
class TestOldPython:
    def test_alone_it_says_one_clear_line(self, launcher: Path, python: str, tmp_path: Path) -> None:
        done = run(python, launcher, "status", env={"PATH": str(tmp_path)})
        assert (done.code, done.out) == (7, "")
        assert len(done.err.splitlines()) == 1
        assert "is too old" in done.err
        assert "3.10 or newer" in done.err

    def test_it_hands_over_to_a_newer_one(
        self, launcher: Path, python: str, shared: dict[str, str], tmp_path: Path
    ) -> None:
        """Past a name of a version manager that only complains."""
        broken, good = tmp_path / "broken", tmp_path / "good"
        for folder in (broken, good):
            folder.mkdir()
        (broken / "python3.14").write_text("#!/bin/sh\nexit 127\n", encoding="utf-8")
        (broken / "python3.14").chmod(0o755)
        (good / "python3.11").symlink_to(sys.executable)
        env = {**shared, "PATH": f"{broken}:{good}:/usr/bin:/bin"}
        done = run(python, launcher, "a b", "--x", env=env)
        assert done.code == 9, done.err
        assert done.seen["argv"] == ["a b", "--x"]


def test_without_any_python_it_says_one_clear_line(launcher: Path, tmp_path: Path) -> None:
    done = run("/bin/sh", launcher, "status", env={"PATH": str(tmp_path)})
    assert (done.code, done.out) == (7, "")
    assert len(done.err.splitlines()) == 1
    assert "python3 was not found" in done.err


def test_a_python_by_version_only_is_good_enough(
    launcher: Path, shared: dict[str, str], tmp_path: Path
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "python3.10").symlink_to(sys.executable)
    # Made by the full PATH first: installers may need more of it.
    assert run(launcher, env=shared).code == 9
    done = run("/bin/sh", launcher, "x", env={**shared, "PATH": str(tools)})
    assert done.seen["argv"] == ["x"], done.err
