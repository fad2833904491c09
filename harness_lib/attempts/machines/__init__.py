"""What many machines that work on one list do with its git remote. Loaded for a list in a database only."""
