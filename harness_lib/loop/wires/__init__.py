"""The wires: what goes to a host of models, and what comes back."""
