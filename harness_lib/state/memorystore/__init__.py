"""A store that nothing outlives, to hold the file store to: the same questions, answered another way."""
