"""Files: written so that a reader sees old or new, appended to, locked, and read without following links."""
