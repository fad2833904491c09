"""Hooks: read the events of hosts, decide, and answer. Standard library only."""
