"""What every verb stands on: the context of a command, sessions, who holds what, trust, replies."""
