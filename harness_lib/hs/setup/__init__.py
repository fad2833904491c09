"""What comes before a turn: its options, the session that it goes on in, its provider and model."""
