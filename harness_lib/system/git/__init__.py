"""Git: read and change repositories; nothing here knows what a task is."""
