"""The records of harness-tasks.json: each field once, with its type, default, bounds and meaning.

Every verb and many hooks start with these: as dataclasses they would take ten times as long to make, and with
annotations that are texts, as `from __future__ import annotations` makes them, nobody could read the table.
"""
