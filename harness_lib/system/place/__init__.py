"""Where things are: the state root of a project, the notes of a session, our own data on this machine."""
