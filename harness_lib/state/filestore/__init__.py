"""The store of one machine: the list is a file, which a reader sees old or new and a writer has alone."""
