"""The rooms that know the shape of the files: codec, schema, store and what lies beside the list."""
