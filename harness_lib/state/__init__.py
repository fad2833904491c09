"""The rooms that know the shape of the files: codec, store and what lies beside the list."""
