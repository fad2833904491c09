"""Files: written so that a reader sees old or new, appended to, and read without following links."""
