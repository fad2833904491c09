"""argv in, text or JSON out: the only floor that prints."""
