"""What verbs share that faces a person: the two streams, drawing with rich, and common options."""
