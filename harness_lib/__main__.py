"""`python -m harness_lib` is the `harness` command."""

from harness_lib.cli.main import entry

entry()
