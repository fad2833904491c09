"""The built-in hooks, by stage."""
