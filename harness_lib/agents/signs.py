"""What tells that an agent, and no person, has typed a command. Each agent's signs are in its own file."""

from __future__ import annotations

from typing import NamedTuple


class Signs(NamedTuple):
    """What one agent leaves in the environment, and what its process is called.

    `variables` are set for each command that it runs; none of them is set in the terminals of persons.
    `session` is the variable with the id of its conversation, `process` the one with its process's number.
    `details` are set beside these. `hooks` are set for its hooks.
    `programs` are names of its process, for an agent that sets no variable.
    """

    name: str
    variables: tuple[str, ...] = ()
    session: str = ""
    process: str = ""
    details: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()

    def all_variables(self) -> set[str]:
        """Return every variable by which a command could take itself for one of this agent."""
        return {*self.variables, *self.details, self.session, self.process} - {""}
