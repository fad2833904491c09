"""The coding agents that `harness run` drives without a person, one small file each.

An adapter says how its agent is started, how it is given the brief, and what the lines of its output mean.
Nothing here starts a process or looks at a clock: a line and a moment go in, a report comes out.
"""

from harness_lib.agents.registry import ADAPTERS, named

__all__ = ["ADAPTERS", "named"]
