"""A task list on disk that keeps agents working until it is done."""

__version__ = "0.2.0"
