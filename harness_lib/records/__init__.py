"""The records of harness-tasks.json: each field once, with its type, default, bounds and meaning.

Every verb and many hooks import these modules. They are named tuples because dataclasses take ten times as
long to make, and do without `from __future__ import annotations` because `columns` reads their annotations.
"""
