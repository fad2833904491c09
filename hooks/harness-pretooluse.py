"""The PreToolUse hook, under the name that is in the settings of hosts: `hook.py` answers."""

import os

EVENT = "PreToolUse"
try:
    exec(open(os.path.join(os.path.dirname(os.path.realpath(__file__)), "hook.py")).read())
except (OSError, SyntaxError):
    pass  # An incomplete installation holds no agent.
