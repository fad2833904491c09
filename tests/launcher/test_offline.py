"""`bin/harness` without a network: one clear error, and none at all once its environment is made."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.conftest import for_release
from tests.launcher.launching import CHECKOUT, REAL_ENVIRON, run


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
        uv = tmp_path / "programs" / "uv"
        uv.parent.mkdir()
        uv.write_text(f"#!/bin/sh\necho 'ERROR: Exception:' '{error}' >&2\nexit 1\n", encoding="utf-8")
        uv.chmod(0o755)

        done = run(launcher, "status", env={**offline, "PATH": f"{uv.parent}:{REAL_ENVIRON['PATH']}"})

        assert done.code == 7
        assert "No space left on device. Make room or permission there, or set HARNESS_HOME." in done.err
        assert "registry" not in done.err

    def test_doctor_works_and_says_what_is_missing(self, offline: dict[str, str], tmp_path: Path) -> None:
        done = run(CHECKOUT / "bin" / "harness", "doctor", "--json", env=offline, cwd=tmp_path)
        assert done.code == 1, done.err
        assert "no package registry could be reached" in done.err
        findings = {each["what"]: each for each in json.loads(done.out)["found"]}
        assert "not installed: filelock, jsonschema, rich, tomlkit" in findings
        assert findings["not installed: filelock, jsonschema, rich, tomlkit"]["cure"].endswith(
            "harness --version"
        )
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
