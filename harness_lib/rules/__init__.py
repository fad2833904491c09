"""Decisions: pure functions of (state, facts, now).

Nothing here reads a clock, a file or the environment, and nothing here changes its arguments.
"""
