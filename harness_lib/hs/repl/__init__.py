"""A person who talks to `hs` at a terminal; the only room with prompt_toolkit and rich."""
