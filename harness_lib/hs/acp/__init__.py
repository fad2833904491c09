"""The Agent Client Protocol: editors and other clients talk to `hs` over standard input and output.

One process speaks the protocol, and each session has one of its own below it: the directory of a session
counts for everything there, sessions work side by side, and a turn can be ended at any moment.
"""

# What the user may say to a call, as the client is told.
ALLOW_ONCE, ALLOW_ALWAYS, REJECT_ONCE = "allow_once", "allow_always", "reject_once"
