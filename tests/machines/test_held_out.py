"""A held-out check stays on the machine on which it was typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.machines.world import World
from tests.system.git.gitrepo import put


@pytest.mark.release
def test_only_the_machine_that_has_it_completes_what_needs_it(world: World, tmp_path: Path) -> None:
    one, two = world.machine("one"), world.machine("two")
    put(tmp_path / "held.sh", "#!/bin/sh\ngrep -q done a\n", executable=True)
    held = one.add("Held", "test -f a", "--hidden", str(tmp_path / "held.sh"), do="write a done")
    other = one.file_task("b")
    world.trust()

    assert two.start("-j", "1").wait(60) == 9
    assert "what is held out is not on this machine" in two.printed + two("status").out
    assert two.statuses_now == {held: "pending", other: "completed"}

    one.ok("retry", held)
    assert one.start("-j", "1").wait(60) == 0, one.printed
    world.each_once(held, other)
