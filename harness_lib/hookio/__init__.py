"""What hosts tell us and what we answer: one short visit per event of an agent. Standard library only."""
