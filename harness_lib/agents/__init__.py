"""The coding agents, one file each: its signs, its hooks and their answers, how `harness run` drives it.

Nothing here starts a process or reads a clock: a line and a moment go in, a report comes out.
"""
