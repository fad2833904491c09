"""One file per verb, named as it is typed: opens one short transaction, asks `rules`, and uses `system`."""
