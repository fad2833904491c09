"""Files: replaced atomically, opened without following links, and directories of them."""
