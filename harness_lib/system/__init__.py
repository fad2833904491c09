"""The machine: files, locks, processes and git; nothing here knows what a task is."""
