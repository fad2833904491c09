"""What happens to a world of machines, by chance, and is over again after a while."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.machines.place import Place, fill
from tests.machines.weather import SmallWorld
from tests.runs import forking
from tests.runs.workshop import descendants, signal_all

# Some of them twice as often.
SERVER_WAYS = (*("database restarts",) * 2, "database stops", "database hangs", "git stops", "git full")
MACHINE_WAYS = (*("unplugged",) * 2, *("sleeps",) * 2, *("off",) * 2, "run dies", "worker dies", "disk full")


@dataclass
class Storm:
    """Let things happen for a while, each for `lasts` seconds and `gap` seconds apart."""

    world: SmallWorld
    chance: random.Random
    workers: int
    lasts: tuple[float, float] = (2, 30)
    gap: tuple[float, float] = (1, 6)
    # What goes on: when it ends, whom it concerns, and how it ends.
    lasting: list[tuple[float, str, Callable[[], object]]] = field(default_factory=list)
    # Whom something concerned, from when to when (seconds since the epoch).
    spans: list[tuple[str, float, float]] = field(default_factory=list)
    deck: list[str] = field(default_factory=list)

    def run(self, seconds: float, times: int) -> None:
        """Let at most `times` things happen, for at most `seconds`, while there is something to do."""
        for place in self.world.places:
            self.start(place)
        end, due = time.monotonic() + seconds, 0.0
        while time.monotonic() < end and (times or self.lasting) and not self.world.all_done():
            time.sleep(0.1)
            self.end(time.monotonic())
            self.start_again()
            if times and time.monotonic() > due and self.world.has_begun():
                times -= 1
                due = time.monotonic() + self.chance.uniform(*self.gap)
                self.happen()
        self.end(float("inf"))
        self.world.tell("the weather is fine again")

    def finish(self, seconds: float) -> None:
        """Let the runs come to their end in fine weather."""
        end = time.monotonic() + seconds
        while not (
            self.world.all_done() and all(each.runs[-1].poll() is not None for each in self.world.places)
        ):
            assert time.monotonic() < end, f"the runs do not end: {self.world.story}"
            time.sleep(0.2)
            if not self.world.all_done():
                self.start_again()

    def start(self, place: Place) -> None:
        place.start("-j", str(self.workers), "--no-final-check")

    def start_again(self) -> None:
        """Start again what has ended, as whoever looks after it does."""
        for place in self.world.places:
            code = place.runs[-1].poll()
            if code is not None and not self.concerns(place.name):
                last = " | ".join(place.printed.strip().splitlines()[-3:])
                self.world.tell(f"{place.name}: its run has ended with {code}: {last if code else ''}")
                self.start(place)

    def concerns(self, who: str) -> bool:
        return any(each[1] == who for each in self.lasting)

    def happen(self) -> None:
        """Draw what happens; what cannot, because the same is going on, is put off."""
        if not self.deck:
            self.deck = [*SERVER_WAYS, *MACHINE_WAYS]
            self.chance.shuffle(self.deck)
        free = [each for each in self.world.places if not self.concerns(each.name)]
        for way in self.deck:
            if way in SERVER_WAYS and not self.concerns(way.split()[0]):
                self.deck.remove(way)
                return self.to_server(way)
            if way in MACHINE_WAYS and free:
                self.deck.remove(way)
                return self.to_machine(self.chance.choice(free), way)
        return None

    def for_a_while(self, who: str, what: str, undo: Callable[[], object]) -> None:
        span, now = self.chance.uniform(*self.lasts), time.time()
        self.world.tell(f"{who} {what} for {span:.0f} s")
        self.lasting.append((time.monotonic() + span, who, undo))
        self.spans.append((who, now, now + span))

    def end(self, now: float) -> None:
        """End what lasts no longer than until `now`."""
        for each in [each for each in self.lasting if each[0] <= now]:
            _, who, undo = each
            undo()
            self.lasting.remove(each)
            self.world.tell(f"{who}: over")
            began = next(span for span in reversed(self.spans) if span[0] == who)
            self.spans.append((who, began[1], time.time()))

    def to_server(self, way: str) -> None:
        world, (who, what) = self.world, way.split()
        if way == "database restarts":
            world.tell(way)
            now = time.time()
            world.restart_database()
            self.spans.append((who, now, time.time()))
        elif way == "database stops":
            world.pg("-m", "immediate", "stop")
            self.for_a_while(who, what, lambda: world.pg(*world.starting, "start"))
        elif way == "database hangs":
            pids = world.postgres_pids()
            signal_all(pids, signal.SIGSTOP)
            self.for_a_while(who, what, lambda: signal_all(pids, signal.SIGCONT))
        elif way == "git stops":
            world.stop_git()
            self.for_a_while(who, what, world.serve_git)
        else:
            fill(world.remote.parent)
            self.for_a_while(who, what, (world.remote.parent / "ballast").unlink)

    def to_machine(self, place: Place, way: str) -> None:
        who = place.name
        if way == "unplugged":
            self.world.network.cable(who, "down")
            self.for_a_while(who, way, lambda: self.world.network.cable(who, "up"))
        elif way == "sleeps":
            place.signal(signal.SIGSTOP)
            self.for_a_while(who, way, lambda: place.signal(signal.SIGCONT))
        elif way == "off":
            place.die()
            self.for_a_while(who, way, lambda: self.start(place))
        elif way == "disk full":
            place.fill_disk()
            self.for_a_while(who, way, place.empty_disk)
        else:
            run = place.runs[-1].pid
            pids = [run] if way == "run dies" else [pid for pid in descendants(run) if is_worker(pid)]
            self.world.tell(f"{who}: {way}")
            signal_all(self.chance.sample(pids, min(1, len(pids))), signal.SIGKILL)


def is_worker(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip() == forking.WORKER
    return False
