"""One file per verb: each opens one short transaction, asks `rules`, and uses `system`."""
