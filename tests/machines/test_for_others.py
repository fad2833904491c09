"""A branch that machines may not push: they collect their work on another one, and others merge it."""

from __future__ import annotations

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from harness_lib.attempts import publish
from harness_lib.state.pgstore.store import PgStore
from harness_lib.system import flock
from tests.conftest import for_release
from tests.machines.world import Machine, World, at
from tests.system.git.gitrepo import put, sh
from tests.waiting import until

PROTECTED = 'case "$1" in refs/heads/main) echo "main is protected" >&2; exit 1; esac'


def protect(world: World) -> Path:
    """Let the remote refuse every push to its branch."""
    return world.hook("update", PROTECTED)


def proposing(world: World) -> tuple[str, ...]:
    """Return the options of a run whose pull requests are lines of the file `asked`."""
    command = (
        f'echo "$HARNESS_BRANCH: $HARNESS_TITLE" >> {world.place}/asked; echo https://host.example/pull/7'
    )
    return ("--merge", "pull-request", "--merge-command", command)


def merged_by_others(world: World, how: str) -> None:
    """Merge the collected work as a host does, and delete its branch."""
    others = world.place / "others"
    sh(world.place, "clone", "-q", str(world.remote), str(others))
    if how in ("rebased", "reordered"):
        order = ("--reverse",) if how == "rebased" else ()
        picked = sh(others, "rev-list", *order, "main..origin/harness/main").split()
        sh(others, "commit", "-q", "--allow-empty", "-m", "By hand")
        sh(others, "cherry-pick", *picked)
    else:
        sh(others, "merge", "-q", how, "origin/harness/main")
    if how == "--squash":
        sh(others, "commit", "-q", "-m", "All of it (#7)")
    hook = world.remote / "hooks/update"
    hook.rename(hook.with_name("off"))
    sh(others, "push", "-q", "origin", "HEAD:main", ":harness/main")
    hook.with_name("off").rename(hook)


def halts(machine: Machine) -> list[str | None]:
    return [task.halt_kind for task in machine.asks().search()]


@pytest.mark.parametrize("how", ["--squash", *for_release(("--no-ff",), ("reordered",))])
def test_one_request_has_the_work_of_all_machines(world: World, one: Machine, two: Machine, how: str) -> None:
    protect(world)
    one.file_task("a")
    refused = one.run()
    assert refused.returncode == 7, refused.stdout
    assert "origin has not taken main" in refused.stderr
    assert "main is protected" in refused.stderr
    assert " --merge pull-request" in refused.stderr

    one.ends(9, *proposing(world))
    assert "went back to" not in one.log_text
    one.file_task("b")
    after = one.file_task("c", "--depends-on", "task-001")
    two.ends(9, *proposing(world))

    asked = world.place / "asked"
    assert asked.read_text() == "harness/main: Make a\n"
    assert halts(two) == ["MERGE", "MERGE", None]
    assert "https://host.example/pull/7" in two("show", "task-002").out
    assert sh(world.remote, "ls-tree", "--name-only", "harness/main", "a", "b").split() == ["a", "b"]
    assert (world.log(), world.refs("wip"), world.refs("ready")) == (["Begin"], [], [])

    merged_by_others(world, how)
    said = two.ends(9, *proposing(world))

    assert "task-001 is completed: origin/main has its work" in said.stdout
    assert one.statuses_now == {"task-001": "completed", "task-002": "completed", after: "pending"}
    assert asked.read_text().splitlines()[1:] == ["harness/main: Make c"]
    assert sh(world.remote, "rev-parse", "harness/main^") == sh(world.remote, "rev-parse", "main")


WATCHED = """\
create table public.{name} (id text);
create function public.{name}() returns trigger language plpgsql security definer as $$ begin
  if new.worker like '%#0' and new.status = 'in_progress' and not new.ending then
    insert into public.{name} values (new.id);
  end if;
  return new;
end $$;
create trigger {name} after update on harness.task for each row execute function public.{name}()"""


def test_proposed_work_is_not_taken_for_a_dead_workers(world: World, one: Machine, two: Machine) -> None:
    """A run recovers what its worker that merges has in progress without saying what it does with it."""
    protect(world)
    tasks = [one.file_task(name) for name in ("a", "b")]
    name = "watched_" + world.name.replace("-", "_")
    with psycopg.connect(world.url, autocommit=True) as conn:
        conn.execute(WATCHED.format(name=name))
        try:
            two.ends(9, *proposing(world))
            assert conn.execute(f"select * from public.{name}").fetchall() == []
        finally:
            conn.execute(f"drop trigger {name} on harness.task")
            conn.execute(f"drop function public.{name}; drop table public.{name}")
    assert halts(one) == ["MERGE"] * len(tasks)


@pytest.mark.parametrize("more", ["", *for_release("b")])
def test_a_request_that_failed_is_opened_by_the_next_run(world: World, one: Machine, more: str) -> None:
    one.file_task("a")
    one.ends(9, "--merge", "pull-request", "--merge-command", "echo no login; exit 4")
    assert "no pull request yet: no login" in one("report").text
    for name in more:
        one.file_task(name)
    one.ends(9, *proposing(world))

    assert (world.place / "asked").read_text() == f"harness/main: Make a{', and 1 more' if more else ''}\n"


def test_a_chat_proposes_what_it_may_not_push(world: World, one: Machine, two: Machine) -> None:
    protect(world)
    tasks = [one.add(f"Make {name}", f"grep -q done {name}") for name in ("a", "b")]
    one.works("a")

    assert one("finish", "--merge-command", "true").code == 2
    refused = one("finish")

    assert (refused.code, "main is protected" in refused.text) == (7, True)
    assert "harness finish --merge pull-request" in refused.text
    assert one.read("a") == "done\n"
    assert one.statuses_now[tasks[0]] == "in_progress"
    said = one.ok("finish", *proposing(world))
    assert "waits until origin/main has it (https://host.example/pull/7)" in said["message"]
    assert one.sh("rev-parse", "HEAD") == sh(world.remote, "rev-parse", "main")
    assert "cannot go on" not in one("status").text
    assert one.sh("status", "--porcelain") == ""
    one.works("b")
    one.ok("finish", *proposing(world))
    assert (world.place / "asked").read_text() == "harness/main: Make a\n"
    assert halts(two) == ["MERGE", "MERGE"]
    assert sh(world.remote, "ls-tree", "--name-only", "harness/main", "a", "b").split() == ["a", "b"]

    merged_by_others(world, "--squash")
    assert "task-001 is completed: origin/main has its work" in two("start").text
    assert set(two.statuses_now.values()) == {"completed"}


def test_a_chat_stops_at_the_branch_that_a_run_collects_on(world: World, one: Machine, two: Machine) -> None:
    """As typed, or as the project says; the task is completed, and the checkout is where it was."""
    for name in ("a", "b"):
        one.add(f"Make {name}", f"grep -q done {name}")
    for machine, name, typed in ((one, "a", ("--merge", "branch")), (two, "b", ())):
        if not typed:
            machine.put("harness.toml", '[run]\nmerge = "branch"\n')
        machine.works(name)
        said = machine.ok("finish", *typed)
        assert "is completed" in said["message"], said
        assert said["task"]["status"] == "completed"
        assert machine.sh("rev-parse", "HEAD") == sh(world.remote, "rev-parse", "main")
        assert not (machine.top / name).exists()
    assert set(one.statuses_now.values()) == {"completed"}
    assert sh(world.remote, "ls-tree", "--name-only", "harness/main", "a", "b").split() == ["a", "b"]
    assert (world.log(), world.refs("wip"), world.refs("ready")) == (["Begin"], [], [])
    assert one("store", "check").code == 0


def test_titles_that_no_argument_takes_are_pushed_and_proposed(world: World, one: Machine) -> None:
    """A plan may bring them: NUL, half a surrogate, control characters; and a pull request may be long."""
    protect(world)
    titles = ["NUL \0 in it", "half \ud800 of one", "bell \a and\nlines", "long " * 200] * 2
    checks = [f"test -e f{number} # {'x' * 19_000}" for number in range(len(titles))]
    does = [f"do: write f{number} done" for number in range(len(titles))]
    one.fill(
        [
            {"title": title, "description": do, "validation": {"command": check}}
            for title, do, check in zip(titles, does, checks, strict=True)
        ]
    )

    one.ends(9, *proposing(world))

    assert halts(one) == ["MERGE"] * len(titles)
    assert (world.place / "asked").read_text().startswith("harness/main: NUL ")
    merged_by_others(world, "--squash")
    one.ends(0)
    assert set(one.statuses_now.values()) == {"completed"}
    assert one("store", "check").code == 0


def test_a_chat_opens_a_pull_request_for_what_comes_after_the_merged_one(world: World, one: Machine) -> None:
    protect(world)
    for name in ("a", "b", "c", "d"):
        one.add(f"Make {name}", f"grep -q done {name}")

    def finish(name: str) -> None:
        one.works(name)
        one.ok("finish", *proposing(world))

    finish("a")
    merged_by_others(world, "--squash")
    finish("b")
    finish("c")
    assert halts(one) == [None, "MERGE", "MERGE", None]

    # Others take the first commit of two only; `start` notices.
    others = world.place / "others"
    sh(others, "fetch", "-q", "origin")
    sh(others, "cherry-pick", "origin/harness/main^")
    (world.remote / "hooks/update").rename(world.remote / "hooks/off")
    sh(others, "push", "-q", "origin", "HEAD:main")
    assert "task-002 is completed: origin/main has its work" in one("start").text
    assert halts(one) == [None, None, "MERGE", None]
    finish("d")

    asked = (world.place / "asked").read_text().splitlines()
    assert asked == [f"harness/main: Make {title}" for title in ("a", "b", "c, and 1 more")]


def test_a_chat_takes_the_program_that_is_there_for_pull_requests(world: World, one: Machine) -> None:
    one.add("Make a", "grep -q done a")
    one.works("a")
    program = (
        '#!/bin/sh\n[ "$2" = create ] && echo "$*" >> "${0%/*}/asked" && echo https://host.example/pull/7\n'
    )
    put(world.place / "bin/gh", program, executable=True)

    said = one("finish", "--merge", "pull-request", PATH=f"{world.place}/bin:{os.environ['PATH']}")

    assert said.code == 0, said.text
    assert "--head=harness/main" in (world.place / "bin/asked").read_text()
    assert halts(one) == ["MERGE"]


@pytest.mark.parametrize("hook", ["post-receive", *for_release(("pre-receive",))])
def test_a_chat_that_was_killed_while_it_proposed_goes_on(world: World, hook: str) -> None:
    # What is killed has the turn as long as its claims last.
    one, two = world.machine("one", lease=5), world.machine("two")
    protect(world)
    for name in ("a", "b"):
        one.add(f"Make {name}", f"grep -q done {name}")
    for machine, name in ((two, "a"), (one, "b")):
        machine.works(name)
    two.ok("finish", *proposing(world))
    reached = world.stop_at(hook, "refs/heads/harness/main")
    one.dies_typing("finish", *proposing(world), reached=reached)
    (world.remote / "hooks" / hook).unlink()

    if one("finish", *proposing(world)).code == 1:
        one.ok("finish", *proposing(world))

    assert halts(one) == ["MERGE", "MERGE"]
    merged = sh(world.remote, "log", "--format=%s", "main..harness/main")
    assert merged.splitlines() == ["[task-002] Make b", "[task-001] Make a"]
    assert (world.place / "asked").read_text() == "harness/main: Make a\n"


def collected(world: World) -> list[str]:
    """Return the subjects of what waits on the branch that runs collect on, oldest first."""
    return sh(world.remote, "log", "--reverse", "--format=%s", "main..harness/main").splitlines()


def test_a_chat_keeps_no_turn_from_the_worker_here_that_waits_for_it(world: World, one: Machine) -> None:
    one.file_task("a")
    one.works("a")
    store = at(one).store
    assert isinstance(store, PgStore)
    with ThreadPoolExecutor() as pool, flock.turn(one.top / ".git" / publish.LINE, 1.0):
        pool.submit(one, "finish", "--merge", "branch")
        until("a push", lambda: sh(world.remote, "branch", "--list", "harness/main"))
        pushed = time.monotonic()
        until("a turn that nobody has", lambda: not store.turns())
    assert time.monotonic() - pushed < one.lease / 2
    assert set(one.statuses_now.values()) == {"completed"}


@pytest.mark.parametrize("hook", ["post-receive", *for_release(("pre-receive",))])
@pytest.mark.parametrize("again", ["finish", "start", "another machine"])
def test_a_chat_killed_in_its_push_is_completed_once(world: World, hook: str, again: str) -> None:
    one, two = world.machine("one", lease=5), world.machine("two")
    one.add("Make a", "grep -q done a", do="write a done")
    one.works("a")
    reached = world.stop_at(hook, "refs/heads/harness/main")
    typed = ("finish", "--merge", "branch")
    one.dies_typing(*typed, reached=reached)
    (world.remote / "hooks" / hook).unlink()

    if again == "another machine":
        two.ends(0, "--merge", "branch")
    else:
        if again == "start":
            one.ok("start")
        if set(one.statuses_now.values()) != {"completed"} and one(*typed).code:
            one.ok(*typed)

    assert set(one.statuses_now.values()) == {"completed"}
    assert (world.log(), collected(world)) == (["Begin"], ["[task-001] Make a"])
    assert (world.refs("wip"), world.refs("ready")) == ([], [])
    assert two("store", "check").code == 0, two("store", "check").text


@pytest.mark.parametrize("again", ["start", *for_release(("another machine",))])
def test_what_a_cut_off_chat_pushed_is_completed(
    world: World, one: Machine, two: Machine, again: str
) -> None:
    one.add("Make a", "grep -q done a")
    one.add("Make b", "grep -q done b", "--depends-on", "task-001", do="write b done")
    one.works("a")
    with psycopg.connect(world.url, autocommit=True) as conn:
        body = "begin raise exception ''the cable is cut''; end"
        conn.execute(f"create function public.cut() returns trigger language plpgsql as '{body}'".encode())
        conn.execute(
            "create trigger cut before update on harness.task for each row "
            "when (new.status = 'completed') execute function public.cut()"
        )
        assert "the cable is cut" in one("finish", "--merge", "branch").text
        conn.execute("drop trigger cut on harness.task")
        conn.execute("drop function public.cut")
    assert collected(world) == ["[task-001] Make a"]

    if again == "start":
        assert "task-001 is completed: origin/harness/main has its work" in one("start").text
    two.ends(0, "--merge", "branch")

    assert set(one.statuses_now.values()) == {"completed"}
    assert (world.log(), collected(world)) == (["Begin"], ["[task-001] Make a", "[task-002] Make b"])


@pytest.mark.parametrize("how", ["--squash", *for_release(("--no-ff",), ("rebased",))])
def test_collected_work_that_was_squashed_is_not_called_lost(world: World, one: Machine, how: str) -> None:
    """Unless a later commit has undone it."""
    one.file_task("a")
    one.add("Change a", "grep -q more a", "--depends-on", "task-001", do="write a more")
    one.ends(0, "--merge", "branch")
    world.hook("update", "")
    merged_by_others(world, how)

    assert one("store", "check").code == 0, one("store", "check").text

    others = world.place / "others"
    sh(others, "rm", "-q", "a")
    sh(others, "commit", "-q", "-m", "Take it back")
    sh(others, "push", "-q", "origin", "HEAD:main")
    if how != "--no-ff":
        assert "task-001 is completed, and no branch of origin has its commit" in one("store", "check").text


@pytest.mark.release
def test_accepted_work_goes_to_where_its_run_would_have_brought_it(world: World, one: Machine) -> None:
    task = one.file_task("a")
    one.ends(9, "--merge", "branch", "--review")
    shutil.rmtree(one.top / ".harness/runs")
    one.ok("accept", task, HARNESS_TRUST="1")
    assert world.log() == ["Begin"]
    assert sh(world.remote, "ls-tree", "--name-only", "harness/main", "a") == "a"


def test_accepted_work_goes_to_the_branch_of_its_run_or_nowhere(world: World) -> None:
    """Whatever is checked out where the user types; a machine without the branch says how to get it."""
    for name in ("seed", "remote.git"):
        sh(world.place / name, "branch", "release", "main")
    one, two = world.pair()
    tasks = [one.file_task("a"), one.file_task("b")]
    one.sh("switch", "-q", "release")
    one.ends(9, "--review")
    one.sh("switch", "-q", "main")

    said = one.ok("accept", tasks[0], HARNESS_TRUST="1")["message"]
    assert "It is on release, the branch of its run." in said
    refused = two("accept", tasks[1], "--json", HARNESS_TRUST="1")
    assert (refused.code, refused.json["error"]["hint"]) == (8, "Go there first: git switch release")
    assert two.statuses_now == {tasks[0]: "completed", tasks[1]: "pending"}
    two.sh("switch", "-q", "--no-track", "-c", "release", "origin/release")
    hint = two("accept", tasks[1], "--json", HARNESS_TRUST="1").json["error"]["hint"]
    two.sh(*hint.removeprefix("Say that yours does: git ").split())
    two.ok("accept", tasks[1], HARNESS_TRUST="1")

    assert world.log() == ["Begin"]
    assert sh(world.remote, "ls-tree", "--name-only", "release", "a", "b").split() == ["a", "b"]


@pytest.mark.release
def test_branch_collects_the_work_and_leaves_main_alone(world: World, one: Machine, two: Machine) -> None:
    first = one.file_task("a")
    one.file_task("b", "--depends-on", first)
    one.ends(9, "--merge", "branch", "--max-tasks", "1")
    sh(world.place / "seed", "commit", "-q", "--allow-empty", "-m", "By hand")
    sh(world.place / "seed", "push", "-q", str(world.remote), "main")

    two.ends(0, "--merge", "branch")

    assert set(one.statuses_now.values()) == {"completed"}
    assert world.log() == ["Begin", "By hand"]
    assert sh(world.remote, "ls-tree", "--name-only", "harness/main", "a", "b").split() == ["a", "b"]
    assert sh(world.remote, "merge-base", "--is-ancestor", "main", "harness/main") == ""
