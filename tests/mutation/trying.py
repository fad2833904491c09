"""A plugin of pytest: collect once, see which test runs which line, then try each mutant in a child.

mutmut's own runner collects for each mutant anew, which takes ten times as long as the tests.
A child may use as much processor as its tests need many times over, so that a busy machine condemns nobody.
"""

from __future__ import annotations

import gc
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from unittest import mock

import coverage
import pytest
from mutmut.configuration import config
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state

from tests.mutation import mutants, seen
from tests.mutation.mutants import Mutant
from tests.mutation.ordering import ORDER
from tests.mutation.rooms import ANYWAY

# What a test may use of the processor with a mutant before that counts as one that does not end.
LEAST_SECONDS = 3
TIMES = 10
# What the tests of a mutant may take together: the promising and the quick come first, and one that outlives
# them by then has survived, though a slow one might notice. To be sure: MUTANT_SECONDS=600 bin/mutate
PATIENCE_SECONDS = float(os.environ.get("MUTANT_SECONDS", "5"))
# With more patience than this, what runs while modules are loaded is tried in a process of its own.
APART_FROM_SECONDS = 60
# And what all of them may take there.
APART_SECONDS = 1200
_SURVIVED, _KILLED, _TIMED_OUT = 0, 1, 2
_SAVED_EACH = 10
# Where more of the tests fail without any mutant, something is wrong, and whatever survives says nothing.
_MOST_LEFT_OUT = 0.05

config()  # it is read where we start, and tests go elsewhere


class Tests:
    """The tests of a room: how long each takes, and which functions and lines it runs."""

    def __init__(self, session: pytest.Session) -> None:
        self.session = session
        self.failed: str | None = None
        self.seconds: dict[str, float] = {}
        self.running: dict[str, list[pytest.Item]] = {}
        # Of functions that forks run it is not known which lines.
        self.forks: dict[str, list[pytest.Item]] = {}
        self.lines = coverage.Coverage(data_file=None, include=["harness_lib/*"], messages=False)
        # Of each function, how many of its mutants which test has killed.
        self.killed: dict[str, Counter[str]] = defaultdict(Counter)
        # What ran while modules were loaded has run without any mutant.
        self.loading = set(state()._stats)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self.failed is None:
            self.failed = str(report.longrepr)

    def learn(self, items: Sequence[pytest.Item]) -> None:
        """Run each of these tests once, unharmed."""
        set_mutant_under_test("stats")
        # What tests start cannot tell us what it runs, but for forks.
        os.environ.pop("MUTANT_UNDER_TEST", None)
        with tempfile.TemporaryDirectory() as place:
            file = Path(place, "functions")
            with mock.patch.dict(os.environ, {seen.FILE: str(file)}):
                self._learn(items, file)

    def _learn(self, items: Sequence[pytest.Item], file: Path) -> None:
        self.lines.start()
        for item in items:
            # What an earlier test has left in a cache this one would not run.
            _forget()
            state()._stats.clear()
            self.lines.switch_context(item.nodeid)
            before = _used()
            self.run(item)
            if self.failed:
                # It starts a bare interpreter, say, which knows nothing of mutmut.
                print(f"left out, as it fails without any mutant: {item.nodeid}", file=sys.__stderr__)
                self.failed = None
                seen.take(file)
                continue
            self.seconds[item.nodeid] = _used() - before
            for function in state()._stats:
                self.running.setdefault(function, []).append(item)
            for function in seen.take(file):
                self.forks.setdefault(function, []).append(item)
        self.lines.stop()
        failing = sum(item.nodeid not in self.seconds for item in items)
        if failing > 1 + _MOST_LEFT_OUT * len(items):
            raise pytest.UsageError(f"{failing} of {len(items)} tests fail without any mutant.")

    def run(self, item: pytest.Item) -> None:
        item.ihook.pytest_runtest_protocol(item=item, nextitem=None)

    def of(self, mutant: Mutant) -> list[pytest.Item]:
        """Return the tests that run its function, and what is broken in it, in their order."""
        items = self.running.get(_whole(mutant), [])
        if mutant.lines:
            module = mutant.name.rpartition(".")[0].replace(".", "/")
            by_line = self._by_line(str(self.session.config.rootpath / f"{module}.py"))
            running = {name for line in mutant.lines for name in by_line.get(line, ())}
            items = [item for item in items if item.nodeid in running]
        anyway = [item for item in self.session.items if item.nodeid.startswith(tuple(ANYWAY))]
        items = list(dict.fromkeys([*items, *self.forks.get(_whole(mutant), [])]))
        items = self.in_order(mutant, [item for item in items if item not in anyway])
        return items + self.in_order(mutant, anyway)

    @cache  # noqa: B019 (there is one of these)
    def _by_line(self, file: str) -> Mapping[int, Sequence[str]]:
        contexts: Mapping[int, Sequence[str]] = self.lines.get_data().contexts_by_lineno(file)
        return contexts

    def apart(self, mutant: Mutant) -> str:
        """Return what comes of a mutant in a function that runs while modules are loaded: all begins anew."""
        ours = f"-p{__name__}"
        args = [arg for arg in self.session.config.invocation_params.args if arg != ours]
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as order:
            order.write("\n".join(item.nodeid for item in self.in_order(mutant, self.session.items)))
            order.flush()
            try:
                done = subprocess.run(
                    [sys.executable, "-m", "pytest", "-x", "-ptests.mutation.ordering", *args],
                    cwd=self.session.config.rootpath,
                    env={**os.environ, "MUTANT_UNDER_TEST": mutant.name, ORDER: order.name},
                    capture_output=True,
                    text=True,
                    timeout=APART_SECONDS,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return "timed out"
        failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED ")]
        names = (name for name in self.seconds if any(f"FAILED {name}" in line for line in failed))
        self.killed[_whole(mutant)].update(names)
        return "killed" if done.returncode else "survived"

    def in_order(self, mutant: Mutant, items: Sequence[pytest.Item]) -> list[pytest.Item]:
        """Return those of `items` that pass unharmed: first what killed others like it, then the quick."""
        passing = [item for item in items if item.nodeid in self.seconds]
        killed = self.killed[_whole(mutant)]
        return sorted(passing, key=lambda item: (-killed[item.nodeid], self.seconds[item.nodeid]))


def pytest_runtestloop(session: pytest.Session) -> bool:
    """Try the mutants in the file that MUTANTS names whose fate is not known."""
    memory = Path(os.environ["MUTANTS"])
    tests = Tests(session)
    session.config.pluginmanager.register(tests)
    tried = mutants.known(memory)
    _try_killers(tests, tried)
    # In an order that says nothing: what a run that was cut off has tried is like the rest.
    open_ones = sorted((each.body, n) for n, each in enumerate(tried) if not each.fate)
    if open_ones:
        tests.learn([item for item in session.items if item.nodeid not in tests.seconds])
        # What is there now is shared with every child, and stays so.
        gc.collect()
        gc.freeze()
    for done, (_, n) in enumerate(open_ones, 1):
        tried[n] = _tried(tests, tried[n])
        if done % _SAVED_EACH == 0:
            mutants.remember(memory, tried)
            fates = Counter(each.fate or "to do" for each in tried)
            print(*(f"{fate}: {count}" for fate, count in fates.items()), sep=", ", file=sys.__stderr__)
    mutants.remember(memory, tried)
    # What was left out above is no failure of this.
    session.testsfailed = 0
    return True


def _try_killers(tests: Tests, tried: list[Mutant]) -> None:
    """Let each mutant meet the test that has noticed it before: where all do again, no other test runs."""
    killers = {each.killer for each in tried if not each.fate} - {""}
    tests.learn([item for item in tests.session.items if item.nodeid in killers])
    items = {item.nodeid: item for item in tests.session.items if item.nodeid in tests.seconds}
    for n, each in enumerate(tried):
        if not each.fate and each.killer in items:
            fate, _ = _fate_in_a_child(tests, each, [items[each.killer]])
            tried[n] = replace(each, fate=fate if fate != "survived" else "")


def _whole(mutant: Mutant) -> str:
    """Return what mutmut calls the function of `mutant` unbroken."""
    return mutant.name.partition("__mutmut_")[0]


def _tried(tests: Tests, mutant: Mutant) -> Mutant:
    fate, killer = _fate_in_a_child(tests, mutant, tests.of(mutant))
    if fate == "survived" and _whole(mutant) in tests.loading and PATIENCE_SECONDS >= APART_FROM_SECONDS:
        # What it did when modules were loaded, it did unharmed.
        fate = tests.apart(mutant)
    return replace(mutant, fate=fate, killer=killer)


def _fate_in_a_child(tests: Tests, mutant: Mutant, items: Sequence[pytest.Item]) -> tuple[str, str]:
    """Return what comes of `mutant`, and the test that has noticed it."""
    place = tempfile.mkdtemp(prefix="mutant-")
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _die_with(_try(tests, mutant, items, Path(place)), writing)
    os.close(writing)
    with os.fdopen(reading) as report:
        killer = report.read()
    _, status = os.waitpid(child, 0)
    shutil.rmtree(place, ignore_errors=True)
    tests.killed[_whole(mutant)][killer] += 1
    code = os.waitstatus_to_exitcode(status)
    fates = {_SURVIVED: "survived", _TIMED_OUT: "timed out"}
    return "timed out" if code < 0 else fates.get(code, "killed"), killer


def _try(tests: Tests, mutant: Mutant, items: Sequence[pytest.Item], place: Path) -> tuple[int, str]:
    """Return what comes of `mutant`, and the test that has noticed it; for the child."""
    tests.session.config._tmp_path_factory._basetemp = place.resolve()  # type: ignore[attr-defined]
    _forget()
    set_mutant_under_test(mutant.name)
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    begun = _used()
    for item in items:
        if _used() > begun + PATIENCE_SECONDS:
            break
        limit = int(_used() + LEAST_SECONDS + TIMES * tests.seconds[item.nodeid])
        resource.setrlimit(resource.RLIMIT_CPU, (limit, most))
        tests.run(item)
        if tests.failed:
            return (_TIMED_OUT if "Timeout (>" in tests.failed else _KILLED), item.nodeid
    return _SURVIVED, ""


def _forget() -> None:
    """Empty what was kept of answers that were given without the mutant."""
    for module in [module for name, module in sys.modules.items() if name.startswith("harness_lib.")]:
        for kept in [value for value in vars(module).values() if hasattr(value, "cache_clear")]:
            kept.cache_clear()


def _die_with(end: tuple[int, str], pipe: int) -> None:
    code, killer = end
    os.write(pipe, killer.encode())
    os._exit(code)


def _used() -> float:
    """Return the seconds of the processor that this process has used, and what it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
