"""The base of every verb: the context of a command, sessions, ownership of tasks, trust, replies."""
