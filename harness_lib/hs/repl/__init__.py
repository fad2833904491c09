"""The prompt of `hs` on a terminal; the only package that uses prompt_toolkit and rich."""
