"""Locks: between processes, one after another, for a family of them, and with those that follow the prose."""
