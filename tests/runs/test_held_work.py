"""What a run does not merge by itself: what waits for the user, and work that its check does not prove."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness_lib.attempts import recheck
from harness_lib.checks import Checked
from tests.conftest import for_release
from tests.runs.workshop import Workshop

SECRET = "sh printf 'KEY=1\\n' > .env\nwrite f done"


def committed(workshop: Workshop) -> list[str]:
    return workshop.sh("ls-tree", "-r", "--name-only", "main").splitlines()


def test_caches_of_tasks_side_by_side_do_not_meet(workshop: Workshop) -> None:
    """Each imports the same module: the byte code that differs would conflict."""
    workshop.sh("rm", "-q", ".gitignore")
    workshop.commits("Ignore nothing", {"package.json": "{}\n"})
    for name in ("a", "b", "c"):
        made = (
            f"sh mkdir -p __pycache__ node_modules; echo {name} > __pycache__/m; echo {name} > node_modules/x"
        )
        workshop.add(name, f"grep -q done {name}", do=f"{made}\nwrite {name} done")

    run = workshop.run("-j", "3")

    assert run.returncode == 0, run.stdout
    assert committed(workshop) == ["README.md", "a", "b", "c", "package.json"]
    assert "git does not ignore node_modules/ here. " in run.stdout
    assert "rescue" not in run.stdout
    assert run.stdout.count(", 1 file)") == len("abc")


OWN = (".harness/mine", "harness-init.sh", "harness-tasks.json", "harness.toml")


@pytest.mark.parametrize("commits", [False, True])
def test_what_agents_write_into_files_of_harness_is_in_no_commit(workshop: Workshop, commits: bool) -> None:
    """Also where each work is checked on top of the others', and where git tracks these files."""
    workshop.sh("add", "-f", "harness-tasks.json")
    workshop.commits("Share the list", {"harness.toml": "[run]\njobs = 4\n"})
    for name in ("a", "b", "c"):
        wrote = f"sh mkdir .harness; echo {name} | tee {' '.join(OWN)}"
        commit = f"sh git add -A; git add -f {' '.join(OWN)}; git commit -qm {name}" if commits else "say x"
        workshop.add(name, f"grep -q done {name}", do=f"{wrote}\nwrite {name} done\n{commit}")
    base = workshop.sh("rev-parse", "HEAD")

    run = workshop.run("-j", "3")

    assert run.returncode == 0, run.stdout
    changed = workshop.sh("log", "--format=", "--name-only", f"{base}..main").split()
    assert sorted(changed) == ["a", "b", "c"]
    for number, name in enumerate("abc", 1):
        for own in OWN:
            assert workshop.sh("show", f"refs/harness/rescue/task-00{number}/1-own:{own}") == name
        (said,) = workshop.task(f"task-00{number}")["look_at"]
        assert "'harness-init.sh'" in said
        assert f"harness rescue show task-00{number}/1-own" in said
    assert workshop.read("harness.toml") == "[run]\njobs = 4\n"


def test_a_branch_of_the_user_that_an_agent_merges_stays_as_it_is(workshop: Workshop) -> None:
    """Its settings count, and are not named; those that the agent adds in a commit of its own do not."""
    workshop.commits("Settings", {"harness.toml": "[run]\njobs = 4\n"})
    workshop.sh("checkout", "-q", "-b", "side")
    workshop.commits("Narrow", {"harness.toml": "[run]\njobs = 3\n"})
    workshop.sh("checkout", "-q", "-b", "later")
    workshop.commits("Narrower", {"harness.toml": "[run]\njobs = 2\n"})
    workshop.sh("checkout", "-q", "main")
    commit = "sh echo 'jobs = 9' > harness.toml; git add -A; git commit -qm own"
    workshop.add("Merge", "grep -q done f", do=f"sh git merge -q --no-ff side -m x\nwrite f done\n{commit}")
    workshop.add("Merge alone", "grep -q done g", do="sh git merge -q --no-ff later -m x\nwrite g done")

    workshop.ends(0)

    first, second = workshop.task("task-001"), workshop.task("task-002")
    for task, jobs in ((first, 3), (second, 2)):
        assert workshop.sh("show", f"{task['completed_commit']}:harness.toml") == f"[run]\njobs = {jobs}"
    assert {"side", "later"} <= set(workshop.sh("branch", "--merged", "main").split())
    assert ("look_at" in first, "look_at" in second) == (True, False)


def test_a_secret_waits_for_its_answer_while_the_others_go_on(workshop: Workshop) -> None:
    """One is accepted, one is returned, and one that is accepted no longer fits."""
    for name in ("f", "g", "h"):
        do = f"sh mkdir -p {name}\nsh printf 'KEY=1\\n' > {name}/.env\nwrite {name}/x done"
        workshop.add(f"Secret {name}", f"grep -q done {name}/x", do=do)
    workshop.file_task("other")

    run = workshop.run()

    assert run.returncode == 9, run.stdout
    assert committed(workshop) == [".gitignore", "README.md", "other"]
    lines = run.stdout.splitlines()
    (at,) = [at for at, line in enumerate(lines) if line.startswith("  task-001 Secret f  ")]
    assert lines[at].endswith("passed, but the work adds what is named like a secret: 'f/.env'")
    assert lines[at + 1] == "      harness rescue show task-001/1-work"
    assert workshop.ok("rescue", "show", "task-001/1-work")["next"] == "harness show task-001"
    answers = "      harness accept task-001 --path f/.env   or: harness return task-001 "
    assert lines[at + 2].startswith(answers)
    task = workshop.task("task-001")
    assert (task["status"], task["halt_kind"], task["attempts"]) == ("pending", "SECRET", 0)
    workshop.nothing_is_left_over()

    assert "is completed (commit" in workshop.ok("accept", "task-001", "--path", "f/.env")["message"]
    assert {"f/.env", "f/x", "other"} <= set(committed(workshop))
    workshop.nothing_is_left_over()
    _no_longer_fits(workshop)

    workshop.ok("return", "task-002", "no keys in here")
    agent = 'grep -q "no keys in here" && test -f g/x && rm g/.env || echo done > h/x'
    run = workshop.run(agent=agent)

    assert run.returncode == 0, run.stdout
    assert {*committed(workshop)} & {"g/.env", "g/x"} == {"g/x"}
    assert [task["attempts"] for task in workshop.state["tasks"]] == [0] * 4


def _no_longer_fits(workshop: Workshop) -> None:
    """Accept work where the user was faster: it goes to an agent again, with the reason."""
    workshop.commits("By hand", {"h/x": "the user was faster\n"})
    said = workshop("accept", "task-003", "--path", "h/.env")
    assert said.code == 1, said.text
    assert "Conflict marks still stand in 'h/x'" in said.out
    task = workshop.task("task-003")
    assert (task["status"], task.get("halt"), task["attempts"]) == ("pending", None, 0)
    assert task["handback"]["rescue"]


def test_what_is_accepted_during_a_run_is_completed_by_its_newest_check(
    workshop: Workshop, tmp_path: Path
) -> None:
    go, begun, end = (tmp_path / name for name in ("go", "begun", "end"))
    workshop.add("Secret", "grep -q done f", do=f"{SECRET}\ntouch {tmp_path}/worked")
    workshop.add("Slow", "grep -q done g", do=f"wait {go}\nwrite g done")
    run = workshop.start("-j", "1")
    workshop.wait_for("it is held", lambda: "goes back: SECRET" in workshop.printed)
    (tmp_path / "worked").unlink()
    waits = f"touch {begun}; until [ -e {end} ]; do sleep 0.05; done; grep -q done f"
    workshop.ok("edit", "task-001", "--validate", waits)
    assert "completes it" in workshop.ok("accept", "task-001", "--path", ".env")["message"]
    go.touch()
    workshop.wait_for("its check runs", begun.exists)

    workshop.ok("edit", "task-001", "--validate", "grep -q done f")
    end.touch()

    assert run.wait() == 0, workshop.printed
    assert (workshop.task("task-001")["status"], workshop.task("task-001")["attempts"]) == ("completed", 0)
    assert {".env", "f", "g"} <= set(committed(workshop))
    assert not (tmp_path / "worked").exists()


# -- a run believes no work that fails what is held out, and its agents see nothing of that


HELD_OUT = "the-answer-is-42"


def test_work_that_fails_what_is_held_out_is_not_merged(workshop: Workshop, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    look = f"sh (env; ps -ww -e -o args; cat; grep -r . .) > {seen} 2>&1"
    held_out = ("--hidden", f"grep -q 42 f && echo {HELD_OUT}", "--max-attempts", "1")
    workshop.add("Wrong", "grep -q . f", *held_out, do=f"{look}\nwrite f 41")
    workshop.add("Right", "grep -q . g", "--hidden", "grep -q 42 g", do="write g 42")

    run = workshop.run("--json", "--final-check", "all")

    assert workshop.statuses() == {"task-001": "failed", "task-002": "completed"}, run.stdout
    assert workshop.task("task-001")["error_log"] == ["[TEST_FAIL] A held-out check failed."]
    assert workshop.task("task-002")["recheck"]["passed"]
    texts = [seen.read_text(errors="replace"), run.stdout, run.stderr]
    texts += [path.read_text(errors="replace") for path in workshop.top.rglob("*") if path.is_file()]
    assert not [text for text in texts if HELD_OUT in text or "grep -q 42" in text]


# -- `harness run --review`: finished work waits until the user has looked at it


def test_an_answer_of_the_user_uses_up_no_session(workshop: Workshop) -> None:
    ids = [workshop.file_task(name) for name in ("a", "b", "c")]
    workshop.ok("edit", "--max-sessions", "1")
    workshop.ends(9, "--review")

    for each in ids:
        assert f"{each} is completed" in workshop.ok("accept", each)["message"]

    assert workshop.state["session_count"] == 1
    assert not workshop.state["sessions"]
    workshop.nothing_is_left_over()


def test_nothing_is_merged_before_the_user_has_accepted_it(workshop: Workshop) -> None:
    """The second of three tasks comes after the first. One is accepted, one goes back; no attempt is lost.

    What changes nothing needs no review.
    """
    first = workshop.file_task("a")
    second = workshop.file_task("b", "--depends-on", first)
    third = workshop.file_task("c")
    nothing = workshop.add("Nothing", "true")
    before = workshop.sh("rev-parse", "main")

    said = workshop.ends(9, "--review")

    assert workshop.sh("rev-parse", "main") == before
    assert f"harness accept {first}   or: harness return {first} " in said.stdout
    lines = said.stdout.splitlines()
    at = lines.index(f"      harness rescue show {first}/1-work")
    assert lines[at - 1].endswith("  passed, and the work waits for your review")
    assert f"your review: harness rescue show {first}. " in workshop.task(first)["halt"]
    kinds = [workshop.task(task).get("halt_kind") for task in (first, second, third)]
    assert kinds == ["REVIEW", None, "REVIEW"]
    assert workshop.task(nothing)["status"] == "completed"
    workshop.nothing_is_left_over()

    assert "is completed (commit" in workshop.ok("accept", first)["message"]
    workshop.ok("return", third, "write it twice")
    assert workshop.read("a") == "done\n"

    workshop.ends(9, "--review", agent='grep -q "write it twice" && echo done >> c || echo done > b')

    assert workshop.sh("show", workshop.task(third)["handback"]["rescue"] + ":c") == "done\ndone"
    for task in (second, third):
        workshop.ok("accept", task)
    assert set(workshop.statuses().values()) == {"completed"}
    assert [task["attempts"] for task in workshop.state["tasks"]] == [0, 0, 0, 0]
    workshop.all_is_well()


@pytest.mark.parametrize("merge", ["local", *for_release("branch")])
def test_accepted_work_goes_to_the_branch_of_its_run(workshop: Workshop, merge: str) -> None:
    """The user has another one checked out by then; where that of the run is gone, it goes there."""
    workshop.sh("switch", "-qc", "other")
    into = "other" if merge == "local" else "harness/other"
    tasks = [workshop.file_task(name) for name in "ab"]
    workshop.ends(9, "--review", "--merge", merge)
    workshop.sh("switch", "-q", "main")
    before = workshop.sh("rev-parse", "main")

    said = workshop.ok("accept", tasks[0])["message"]

    assert said.endswith(f"It is on {into}, the branch of its run.")
    assert workshop.sh("show", f"{into}:a") == "done"
    assert workshop.sh("rev-parse", "main") == before
    for name in {"other", into}:
        workshop.sh("branch", "-m", name, f"{name}-renamed")
    assert "It is on" not in workshop.ok("accept", tasks[1])["message"]
    assert workshop.sh("show", f"{'main' if merge == 'local' else 'harness/main'}:b") == "done"


# -- a run believes what was proven; what somebody has written into the list is checked where work is merged


FORGE = (
    "python3 -c \"import json; p='harness-tasks.json'; d=json.load(open(p)); "
    "[t.update(status='completed') for t in d['tasks']]; json.dump(d, open(p, 'w'))\""
)


def forge(workshop: Workshop, *task_ids: str, **fields: object) -> None:
    state = workshop.state
    for task in state["tasks"]:
        if task["id"] in task_ids:
            task.update(status="completed", **fields)
    (workshop.top / "harness-tasks.json").write_text(json.dumps(state))


def test_a_run_does_the_work_of_a_list_in_which_all_was_said_to_be_done(workshop: Workshop) -> None:
    """Where status and check were written together, it says so."""
    forge(workshop, workshop.file_task("one"), workshop.file_task("two"))
    forge(workshop, workshop.file_task("three"), validation={"command": "true"})

    workshop.ends(0)

    workshop.done_is_done()
    assert workshop.read("one").startswith("done")
    log = workshop.read("harness-progress.txt")
    assert "WARN [task-003] an external edit says" in log
    assert "its check passes: true" in log
    workshop.nothing_is_left_over()


def test_an_agent_of_a_run_that_writes_completed_into_the_list_has_done_nothing(workshop: Workshop) -> None:
    """It forges its own task, which is in progress, and the one after it, which is not."""
    forging = FORGE.replace("'harness-tasks.json'", repr(str(workshop.top / "harness-tasks.json")))
    workshop.add("One", "test -f one", do=f"sh {forging}\nwrite one x")
    workshop.file_task("two")

    workshop.ends(0, "-j", "1")

    workshop.done_is_done()
    assert workshop.task("task-002")["proof"]
    assert (workshop.top / "two").exists()
    workshop.nothing_is_left_over()


# -- a run believes no check that only passes because the attempt has changed what judges


def _with_scripts(workshop: Workshop) -> None:
    workshop.commits("Checks", {"check.sh": "grep -q done f\n", "later.sh": "grep -q done later\n"})


def test_whoever_changes_the_judge_is_sent_back_once_then_waits(workshop: Workshop, tmp_path: Path) -> None:
    _with_scripts(workshop)
    workshop.add("Cheat", "sh check.sh", do="sh echo true > check.sh")
    workshop.add("Another's judge", "grep -q done g", do="write g done\nsh echo true > later.sh")
    put_back = f"test -e {tmp_path}/again && git checkout -q HEAD -- check.sh"
    cheat = f"sh {put_back} || echo true > check.sh; touch {tmp_path}/again"
    workshop.add("Puts it back", "sh check.sh && grep -q done h", do=f"{cheat}\nwrite f done\nwrite h done")
    workshop.add("Later", "sh later.sh", do="write later done")

    run = workshop.run()

    assert run.returncode == 9, run.stdout
    held = [line for line in run.stdout.splitlines() if line.startswith("      harness accept ")]
    assert "harness accept task-001 --path check.sh   or: harness return task-001 " in held[0]
    assert "harness accept task-002 --path later.sh   or: harness return task-002 " in held[1]
    assert workshop.statuses()["task-004"] == "completed"
    assert [workshop.task(f"task-00{n}")["attempts"] for n in (1, 2, 3)] == [0, 0, 0]
    assert workshop.sh("show", "main:later.sh") == "grep -q done later"
    workshop.nothing_is_left_over()

    workshop.ok("accept", "task-001", "--path", "check.sh")

    assert workshop.statuses()["task-001"] == "completed"
    assert workshop.sh("show", "main:check.sh") == "true"


def test_what_passed_before_any_work_is_told_from_what_was_done(workshop: Workshop, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    workshop.add("Nothing to do", "grep -q hello README.md", do="say nothing")
    workshop.add("Refactor", "grep -q hello README.md", do="write more x")
    workshop.add("Flaky", f"test ! -e {seen} || {{ rm {seen}; exit 1; }}", do=f"write f x\ntouch {seen}")
    workshop.add("Breaks it", "grep -q hello README.md", "--max-attempts", "1", do="sh rm README.md")

    run = workshop.run("--json")

    tasks = {each["id"]: each for each in json.loads(run.stdout.splitlines()[-1])["tasks"]}
    warned = {name: " ".join(each["warnings"]) for name, each in tasks.items()}
    assert "was done already" in warned["task-001"]
    assert "had passed its check before any work" in warned["task-002"]
    assert "is flaky" in warned["task-003"]
    outcomes = [workshop.task(name).get("outcome") for name in tasks]
    assert outcomes == ["already_done", None, "flaky", None]
    assert tasks["task-004"]["outcome"] == "failed"
    assert {"1.log", "1-again.log"} <= {
        log.name for log in (workshop.top / ".harness/logs/task-003").iterdir()
    }


def test_only_a_check_of_less_than_two_minutes_runs_again() -> None:
    failed = Checked("TEST_FAIL", "", "", Path(), seconds=119.9)

    assert recheck.is_worth_repeating(failed)
    assert not recheck.is_worth_repeating(failed._replace(seconds=120.0))


def test_a_task_whose_check_passes_already_needs_no_agent(workshop: Workshop) -> None:
    workshop.add("Nothing to do", "grep -q hello README.md")

    run = workshop.run("--skip-green", agent="false")

    assert run.returncode == 0, run.stdout
    assert workshop.task("task-001")["outcome"] == "already_done"


def test_what_was_done_already_is_so_after_its_worker_was_killed(workshop: Workshop, tmp_path: Path) -> None:
    """The second run of the check, after the agent, kills the worker: nothing was made and nothing noted."""
    runs = tmp_path / "runs"
    killing = f"echo x >> {runs}; test $(wc -l < {runs}) != 2 || kill -9 $PPID; grep -q hello README.md"
    workshop.add("Nothing to do", killing, do="say nothing")

    workshop.ends(0)

    task = workshop.task("task-001")
    assert (task["outcome"], task["attempts"]) == ("already_done", 0)
    assert workshop.read("harness-progress.txt").count("RECOVERY [task-001]") == 1


def test_no_precheck_asks_nothing_before_the_work(workshop: Workshop, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    workshop.add("One", f"echo x >> {runs}; grep -q done f", do="write f done")

    workshop.ends(0, "--no-precheck")
    assert runs.read_text() == "x\n"


@pytest.mark.release
def test_a_task_costs_a_bounded_number_of_checks(workshop: Workshop, tmp_path: Path) -> None:
    """One more where no judge changes; before and after its rework at most three more where one does."""
    _with_scripts(workshop)
    runs = {name: tmp_path / name for name in ("plain", "old", "new", "fresh")}
    check = {name: f"echo x >> {path}; " for name, path in runs.items()}
    workshop.add("Plain", f"{check['plain']}grep -q done f", do="write f done")
    edits = "sh echo '# more' >> check.sh\nwrite f done\nwrite old done"
    workshop.add("An old judge", f"{check['old']}sh check.sh && grep -q done old", do=edits)
    vacuous = "write new done\nsh mkdir -p tests; echo true > tests/new.sh"
    workshop.add("A new judge", f"{check['new']}sh tests/new.sh", do=vacuous)
    bites = "write fresh done\nsh mkdir -p tests; echo grep done fresh > tests/fresh.sh"
    workshop.add("A new judge that bites", f"{check['fresh']}sh tests/fresh.sh", do=bites)

    run = workshop.run("--json")

    assert run.returncode == 0, run.stdout
    counted = {name: len(path.read_text().splitlines()) for name, path in runs.items()}
    # The vacuous one is handed in twice: its tests are tried without it once.
    assert counted == {"plain": 2, "old": 3, "new": 4, "fresh": 3}
    look_at = workshop.task("task-003")["look_at"]
    assert len(look_at) == 1, look_at
    assert "adds tests that pass without its work: tests/new.sh" in look_at[0]
    assert [workshop.task(name)["attempts"] for name in workshop.statuses()] == [0, 0, 0, 0]


def test_a_new_start_says_where_the_work_is_that_waited(workshop: Workshop) -> None:
    task = workshop.file_task("a")
    workshop.ends(9, "--review")
    assert f"harness rescue show {task}/1-work" in workshop("retry", task).text
