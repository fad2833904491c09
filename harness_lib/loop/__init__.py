"""The agent loop of `hs`: follow states, and call the plugins of each.

A plugin is a name in a stage. Built-in ones are functions and foreign ones are processes; nobody can tell
the difference but by the clock.
"""
