"""The coding agents, one small file each: its signs, how `harness run` drives it, what its hooks are called.

`SIGNS` says how a command knows that the agent has typed it.
An adapter says how its agent is started, how it is given the brief, and what the lines of its output mean;
`HOOKS` says where the agent's program looks for hooks.
Nothing here starts a process or looks at a clock: a line and a moment go in, a report comes out.
"""

from harness_lib.agents.registry import ADAPTERS, named

__all__ = ["ADAPTERS", "named"]
