"""What a run works among: hooks, signatures, directories, unusual repositories, and a home of its own."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests import forked
from tests.conftest import CHECKOUT, for_release
from tests.run_to_end import run_to_end
from tests.runs.workshop import COMMAND, HARNESS, Workshop
from tests.system.git.gitrepo import commit_all, put, sh
from tests.waiting import PATIENCE

HOOKS = ("pre-commit", "commit-msg", "post-commit", "post-checkout", "reference-transaction", "post-merge")


def test_a_run_commits_without_hooks_and_plugins_of_an_agents(workshop: Workshop, tmp_path: Path) -> None:
    """What it writes of those is kept for the user."""
    mine = workshop.put(".harness/tools/mine", "old\n")
    workshop.sh("add", str(mine))
    workshop.sh("commit", "-q", "-m", "A plugin of ours")
    trace = tmp_path / "trace"
    for hook in HOOKS:
        file = workshop.top / ".git/hooks" / hook
        put(file, f"#!/bin/sh\necho {hook} >> {trace}\nexit 1\n", executable=True)
    workshop.sh("config", "commit.gpgSign", "true")
    workshop.sh("config", "gpg.program", "false")
    plugins = "write .harness/tools/mine done\nwrite .harness/tools/theirs done"
    workshop.add("Make one", "grep -q done one", do=f"write one done\n{plugins}")

    said = workshop.ends(0)

    assert not trace.exists()
    assert "gpgsig" not in workshop.sh("cat-file", "commit", "main")
    assert workshop.sh("show", "--format=", "--name-only", "main").split() == ["one"]
    assert (mine.read_text(), mine.with_name("theirs").exists()) == ("old\n", False)
    (kept,) = workshop.sh("for-each-ref", "--format=%(refname)", "refs/harness/rescue").splitlines()
    assert f"harness rescue show {kept.removeprefix('refs/harness/rescue/')}" in said.stdout + said.stderr
    assert workshop.sh("show", f"{kept}:.harness/tools/theirs") == "done"
    workshop.done_is_done()


def test_python_imports_the_work_tree_in_place_of_the_checkout(workshop: Workshop, tmp_path: Path) -> None:
    """By a path file, by a finder beside pip's record of an editable install, and by PYTHONPATH.

    What the environment has comes before it: no attempt may replace a test runner, or run at Python's start.
    """
    flat = workshop.top / "a package"
    names = {"src/shop.py": "", "lib/tool.py": "", "a package/goods.py": ""}
    # Debian's Python has one of its own, which comes first.
    begins = not Path(sysconfig.get_path("stdlib"), "sitecustomize.py").exists()
    test = f"import installed\nassert installed.at_start is {begins}"
    names |= {
        f"tests/of_{name}.py": f"{test}\nimport {name}\n{name}.done" for name in ("shop", "tool", "goods")
    }
    names |= dict.fromkeys(("src/installed.py", "src/sitecustomize.py"), "raise SystemExit(1)")
    for name, text in names.items():
        workshop.put(name, text)
    commit_all(workshop.top, "Begin the packages")
    venv.create(tmp_path / "an env", symlinks=True)
    (site,) = tmp_path.glob("an env/lib/python*/site-packages")
    (site / "shop.pth").write_text(f"{workshop.top}/src\n")
    (site / "goods.pth").write_text("import goods_finder\n")
    (site / "installed.py").write_text("at_start = False\n")
    (site / "sitecustomize.py").write_text("import installed\ninstalled.at_start = True\n")
    (site / "goods_finder.py").write_text(f"import sys; sys.path.append({str(flat)!r})\n")
    record = {"url": flat.as_uri(), "dir_info": {"editable": True}}
    put(site / "goods-1.dist-info/direct_url.json", json.dumps(record))
    for file in ("src/shop.py", "lib/tool.py", "a package/goods.py"):
        name = Path(file).stem
        writes = f"printf 'done = 1' > '{file}' && python tests/of_{name}.py"
        workshop.add(f"Make {name}", f"python tests/of_{name}.py", do=f"sh {writes}")
    put(Path.home() / ".cargo/config.toml", '[build]\ntarget-dir = "/shared"\n')
    has = """test "$MISE_TRUSTED_CONFIG_PATHS|$CARGO_TARGET_DIR" = "$PWD:/mine|$PWD/.git/target" && """
    has += """test "$GRADLE_OPTS" = "-Dorg.gradle.daemon=false -Da=b:c" && """
    workshop.add("Have what mise, Gradle and Cargo need", f"{has}test -f f", do=f"sh {has}touch f")
    search = f"{workshop.top}/lib{os.pathsep}{CHECKOUT}"
    path = f"{tmp_path}/an env/bin{os.pathsep}{os.environ['PATH']}"

    own = {"MISE_TRUSTED_CONFIG_PATHS": "/mine", "GRADLE_OPTS": "-Da=b:c"}
    workshop.ends(0, "--final-check", "all", PATH=path, PYTHONPATH=search, **own)

    assert [task["attempts"] for task in workshop.state["tasks"]] == [0] * 4


def test_a_script_of_the_project_that_is_on_the_path_works_in_the_work_tree(workshop: Workshop) -> None:
    """As by `PATH_add bin` of direnv. Its check does not find it, as in a chat."""
    script = workshop.put("bin/mine", '#!/bin/sh\ncd "${0%/*}/.." && echo done > f\n', executable=True)
    commit_all(workshop.top, "Begin the script")
    workshop.add("Work", "grep -q done f", do="sh mine")
    workshop.add("Check", "mine", do="write g done")

    said = workshop.ends(9, PATH=f"{script.parent}{os.pathsep}{os.environ['PATH']}")

    assert workshop.statuses() == {"task-001": "completed", "task-002": "pending"}
    assert workshop.task("task-002")["attempts"] == 0
    assert "Command not found: mine (not looked for in the work tree)" in said.stdout


_HIDES = "echo 'import os; os._exit(0)' > src/{}.py"


@pytest.mark.parametrize(
    ("module", "cheat"),
    [
        *((name, _HIDES.format(name)) for name in ("sitecustomize", "unittest", "installed")),
        ("shop", "mkdir src/a_plugin.egg-info && echo 'done = 1' > src/shop.py"),
    ],
    ids=["at start", "Python's", "installed", "a plugin of an installed one"],
)
def test_nothing_new_is_imported_in_the_place_of_pythons_or_an_installed_module(
    workshop: Workshop, tmp_path: Path, module: str, cheat: str
) -> None:
    """It would answer for the runner of the check, and of a held-out one."""
    workshop.put("src/shop.py", "")
    commit_all(workshop.top, "Begin the package")
    venv.create(tmp_path / "env", symlinks=True)
    (site,) = tmp_path.glob("env/lib/python*/site-packages")
    put(site / "installed.py", "")
    check = f"python -c 'import {module}, shop; shop.done'"
    workshop.add("Cheat", check, "--max-attempts", "1", do=f"sh {cheat}")
    path = f"{tmp_path}/env/bin{os.pathsep}{os.environ['PATH']}"

    workshop.ends(9, PATH=path, PYTHONPATH=f"{workshop.top}/src{os.pathsep}{CHECKOUT}")

    assert workshop.statuses() == {"task-001": "failed"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is full")
@pytest.mark.parametrize("where", ["full", "unread"])
def test_a_run_ends_with_its_work_although_nobody_reads_how_it_goes(workshop: Workshop, where: str) -> None:
    """As in `harness run | head -1`, or where its output goes to a disk that is full."""
    workshop.file_task("one")
    workshop.file_task("two", "--depends-on", "task-001")
    reading, writing = os.pipe()
    os.close(reading)
    argv = ("run", "--agent-command", COMMAND, "--no-final-check")
    with os.fdopen(writing, "w") as unread, Path("/dev/full").open("w") as full:
        out = full if where == "full" else unread
        run = forked.start(HARNESS, argv, workshop.top, workshop.env, out, out)
        workshop.runs.append(run)
        code = run.wait(PATIENCE)

    assert set(workshop.statuses().values()) == {"completed"}
    assert code == (7 if where == "full" else 0)


@pytest.mark.release
def test_no_run_verb_or_hook_pushes(workshop: Workshop, tmp_path: Path) -> None:
    """Commits are harness's; where its commits go is the user's decision, however well a remote is set up."""
    words = tmp_path / "words"
    programs = recording(tmp_path / "programs", words)
    # One process owns the session of all verbs.
    mine = {"PATH": programs, "CLAUDE_PID": str(os.getpid())}
    remote = with_remote(workshop.top, tmp_path / "remote.git")
    before = sh(remote, "for-each-ref")
    workshop.file_task("one")
    workshop.add("Never", "false", "--max-attempts", "1", do="write f x")

    workshop.ends(9, "-j", "2", PATH=programs)

    workshop.ok("retry", "task-002")
    for verb in ("start", "claim"):
        assert workshop.harness(verb, **mine).returncode == 0
    workshop.put("f", "by hand\n")
    assert workshop.harness("finish", **mine).returncode == 1
    workshop.file_task("three")
    assert workshop.harness("claim", **mine).returncode == 0
    workshop.put("three", "done\n")
    assert workshop.harness("finish", **mine).returncode == 0
    for hook in sorted((CHECKOUT / "hooks").glob("harness-*.py")):
        rung = subprocess.run(
            [sys.executable, "-I", "-S", hook],
            cwd=workshop.top,
            env={**workshop.env, "PATH": programs},
            input=json.dumps({"cwd": str(workshop.top), "session_id": "s"}).encode(),
            check=False,
        )
        assert rung.returncode in (0, 2)

    typed = words.read_text().splitlines()
    assert {"commit-tree", "merge-tree"} & {word for line in typed for word in line.split()}
    assert [line for line in typed if not SENDING.isdisjoint(line.split())] == []
    assert sh(remote, "for-each-ref") == before
    assert workshop.sh("rev-list", "--count", "origin/main..main") != "0"


SENDING = {"push", "send-pack", "gh", "glab", "hub"}


def recording(folder: Path, words: Path) -> str:
    """Return a PATH on which each git, and each client of a forge, first notes its arguments in `words`."""
    for name in ("git", "gh", "glab", "hub"):
        real = shutil.which(name) or "true"
        put(folder / name, f'#!/bin/sh\necho {name} "$@" >> {words}\nexec {real} "$@"\n', executable=True)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def with_remote(top: Path, place: Path) -> Path:
    """Give the repository at `top` a remote at `place` that its branch follows and git pushes to."""
    sh(top, "init", "-q", "--bare", "-b", "main", str(place))
    sh(top, "remote", "add", "origin", str(place))
    sh(top, "push", "-q", "-u", "origin", "main")
    sh(top, "config", "push.default", "current")
    return place


# -- runs in repositories of every kind: what workers have there, and what is refused before a run begins


COMMIT = "git add -A && git -c user.name=a -c user.email=a@b commit -qm mine"


def _origin(place: Path) -> Path:
    origin = place / "origin"
    origin.mkdir()
    sh(origin, "init", "-q", "-b", "main")
    for number in range(4):
        commit_all(origin, f"Number {number}", {"a/x": f"{number}\n", "b/y": f"{number}\n"})
    sh(origin, "config", "uploadpack.allowFilter", "true")
    sh(origin, "config", "uploadpack.allowAnySHA1InWant", "true")
    return origin


# Each makes `a top`, of the repository `origin` beside it.
REPOSITORIES = {
    "sparse": "git clone -q origin 'a top' && cd 'a top' && git sparse-checkout set --cone a",
    "shallow": "git clone -q --depth=2 file://$PWD/origin 'a top'",
    "partial": "git clone -q --filter=blob:none file://$PWD/origin 'a top'",
    "bare": "git clone -q --bare origin b.git && git -C b.git worktree add -q '../a top' main",
    "sha256": "git init -q -b main --object-format=sha256 'a top' && mv origin/a 'a top' && cd 'a top' && "
    "git add a && git commit -qm Begin",
    "elsewhere": "git clone -q --separate-git-dir 'git dir' origin 'a top'",
}


@pytest.mark.parametrize("kind", ["sparse", *for_release(*list(REPOSITORIES)[1:])])
def test_a_run_works_in(kind: str, tmp_path: Path) -> None:
    _origin(tmp_path)
    subprocess.run(REPOSITORIES[kind], shell=True, cwd=tmp_path, check=True)
    top = tmp_path / "a top"
    sh(top, "config", "user.name", "Me")
    workshop = Workshop(top, tmp_path / "home")
    workshop.ok("init")
    look = f"(git config user.name; git log --oneline | wc -l; ls; git status --porcelain) > {tmp_path}/seen"
    do = f"sh {look}\nwrite f half\nsh {COMMIT}\nwrite f done"
    workshop.add("Work", "grep -q done f && grep -q 3 a/x", do=do)
    expected = [
        "Me",
        str(len(sh(top, "log", "--oneline").splitlines())),
        *(path.name for path in sorted(top.iterdir()) if path.name in ("a", "b")),
    ]

    workshop.ends(0)

    assert (tmp_path / "seen").read_text().split() == expected
    assert sh(top, "log", "--format=%s", "-2").splitlines()[1] == "mine"
    assert sh(top, "status", "--porcelain") == ""
    assert sh(top, "fsck", "--no-dangling") == ""
    assert (top / "b").exists() is ("b" in expected)


@pytest.mark.release
def test_a_partial_clone_whose_remote_is_gone_is_refused_in_a_sentence(tmp_path: Path) -> None:
    sh(tmp_path, "clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{_origin(tmp_path)}", "clone")
    (tmp_path / "origin").rename(tmp_path / "gone")
    sh(tmp_path / "clone", "read-tree", "HEAD")
    workshop = Workshop(tmp_path / "clone", tmp_path / "home")
    workshop.ok("init")
    workshop.file_task("f")

    said = workshop.ends(7)

    assert "This clone is partial, and files that are missing here cannot be fetched" in said.stderr
    assert workshop.task("task-001")["attempts"] == 0


def test_a_submodule_whose_commit_the_user_lacks_is_refused(workshop: Workshop, tmp_path: Path) -> None:
    allow = ("-c", "protocol.file.allow=always")
    workshop.sh(*allow, "submodule", "--quiet", "add", str(_origin(tmp_path)), "lib")
    workshop.sh("commit", "-qm", "A submodule")
    lacking = "1" * 40
    workshop.sh("update-index", "--cacheinfo", f"160000,{lacking},lib")
    workshop.sh("commit", "-qm", "At a commit that was never pushed")
    workshop.file_task("f")

    said = workshop.ends(7)

    assert "The submodule 'lib' is recorded at 111111111111" in said.stderr
    assert "git submodule update --init lib" in said.stderr


@pytest.mark.skipif(shutil.which("git-lfs") is None, reason="git-lfs is not installed")
def test_large_files_come_from_the_users_store_and_go_there(workshop: Workshop, tmp_path: Path) -> None:
    top = workshop.top
    sh(top, "lfs", "install", "--local")
    sh(top, "lfs", "track", "*.bin")
    commit_all(top, "A large file", {"one.bin": "one\n"})
    steps = f"cat one.bin > {tmp_path}/seen", "echo zero > no.bin", f"{COMMIT}; rm no.bin"
    # It seems to be stored while it is copied.
    name = hashlib.sha256(b"zero\n").hexdigest()
    stored = put(top / ".git/lfs/objects" / name[:2] / name[2:4] / "x", "").with_name(name)
    stored.symlink_to("nothing")
    workshop.add(
        "Large",
        "grep -q three two.bin && grep -q one one.bin",
        do=f"sh {' && '.join(steps)}\nwrite two.bin two\nsh {COMMIT}\nwrite two.bin three\nsh {COMMIT}",
    )

    workshop.ends(0)

    assert (tmp_path / "seen").read_text() == "one\n"
    assert "git-lfs" in sh(top, "show", "HEAD:two.bin")
    # The one that is only in the history as well.
    files = [path for path in (top / ".git/lfs/objects").rglob("*") if path.is_file()]
    assert {path.read_text() for path in files} == {"", "one\n", "two\n", "two\nthree\n"}
    assert len({path.stat().st_mode for path in files}) == 1
    assert "ROLLBACK" not in workshop.read("harness-progress.txt")


@pytest.mark.skipif(shutil.which("git-crypt") is None, reason="git-crypt is not installed")
def test_encrypted_files_can_be_read_in_a_work_tree_and_the_key_stays(workshop: Workshop) -> None:
    sh(workshop.top, "crypt", "init")
    commit_all(workshop.top, "A secret", {".gitattributes": "s* filter=git-crypt\n", "secret": "one\n"})
    workshop.add(
        "Change",
        "grep -q two s*",
        do=f"sh grep one secret\nwrite secret two\nsh {COMMIT} && rm .git/git-crypt/keys/*",
    )

    workshop.ends(0)

    assert sh(workshop.top, "show", "HEAD:secret").startswith("\0GITCRYPT")
    assert (workshop.top / ".git/git-crypt/keys/default").is_file()


# -- HARNESS_HOME names one directory for `harness` and `hs`, in which neither is in the other's way


TOOL = '#!/bin/sh\n[ "$1" = --describe ] && echo "Greets"\n'


@pytest.mark.release
@pytest.mark.parametrize("named", [True, False])
def test_harness_and_hs_find_what_is_theirs(workshop: Workshop, home: Path, *, named: bool) -> None:
    """In the one directory, or each in its own; nothing is made in the other place."""
    unset = () if named else ("HARNESS_HOME", "XDG_DATA_HOME")
    env = {name: value for name, value in workshop.env.items() if name not in unset}
    tool = put((workshop.home if named else home / ".harness") / "tools/greet", TOOL, executable=True)
    workshop.add("Greet", "test -f greeted")

    def typed(module: str, *argv: str) -> str:
        return run_to_end([sys.executable, "-m", module, *argv], cwd=workshop.top, env=env, check=True).stdout

    typed("harness_lib", "run", "--agent-command", "pwd > greeted")

    trees = workshop.home if named else home / ".local/share/harness"
    assert f"{trees}/worktrees/" in workshop.read("greeted")
    assert f"Greets  [{tool}]" in typed("harness_lib.hs", "tools")
    assert tool.read_text() == TOOL
    assert sorted(home.glob(".harness/*")) == ([] if named else [tool.parent])
    assert (home / ".local").exists() is not named
