"""How the records of `harness_lib/records` are read and written."""
