"""Our hooks, by stage."""
