"""The unattended run: a scheduler, its workers, and the agents that they start."""
