"""What verbs share that faces the user: the two streams, drawing with rich, and common options."""
