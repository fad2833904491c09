"""argv in, text or JSON out: the only package that prints."""
