"""The life of one attempt at a task: claimed, checked, committed, merged or rolled back, and recovered."""
