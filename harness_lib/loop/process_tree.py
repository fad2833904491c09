"""A program with everything below it: its process group, and those that what it has started has made."""

from __future__ import annotations

from harness_lib.system.processes import process, reaper


class ProcessTree:
    """The groups that the process `leader` and its descendants lead, as they are now.

    Whose parent has ended is nobody's descendant: refresh while the tree still stands.
    """

    def __init__(self, leader: int) -> None:
        self._leader = leader
        self._groups = {leader}
        self.refresh()

    def refresh(self) -> None:
        """Add the groups that have been made since."""
        living = list(process.everybody())
        members = {self._leader}
        while more := {each.pid for each in living if each.parent in members} - members:
            members |= more
        self._groups |= {pid for pid in members if pid == process.group(pid)}

    def signal(self, number: int) -> bool:
        """Send signal `number` to all of them; return whether anybody is left in one."""
        # A group that is empty is forgotten: another process may get its number.
        self._groups = {group for group in self._groups if reaper.signal_group(group, number)}
        return bool(self._groups)
