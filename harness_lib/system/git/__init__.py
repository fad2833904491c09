"""Git as a facility: what a repository holds and how it is changed; nothing here knows what a task is."""
