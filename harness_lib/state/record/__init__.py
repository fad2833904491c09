"""What follows from the records of `harness_lib/records`: how they are read, written, published and typed.

`python -m harness_lib.state.record` writes the JSON Schema and the reference page anew.
"""
