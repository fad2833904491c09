"""One file per verb, named as it is typed: opens one short transaction, asks `rules`, and uses `system`.

`SUMMARY`, `EXAMPLE` and `HELP_ORDER` are for `--help`. `arguments` adds what may be typed after the verb, and
`answer` does what was typed; `args.screen` is the terminal. What it raises is for the user: `cli/main.py`
says it, and exits accordingly.
"""
