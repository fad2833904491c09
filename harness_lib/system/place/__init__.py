"""Places: the state root of a project, the notes of a session, the data directory of this user."""
