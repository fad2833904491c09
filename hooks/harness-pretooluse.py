"""Rings before the agent edits a file: the list is not edited by hand."""

# Everything here must parse on any old Python, so that a machine which has one is told so in one line.
import os
import sys

EVENT = "PreToolUse"

if sys.version_info < (3, 10):
    sys.stderr.write("harness: its hooks need Python 3.10 or newer, this is %d.%d.\n" % sys.version_info[:2])
    sys.exit(0)
# Until the place of the byte code is known, none is written: not into this folder.
sys.dont_write_bytecode = True
# Behind the standard library: nothing here can take the place of a part of it.
sys.path.append(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
try:
    from harness_lib.hookio import entry

    CODE = entry.answer(EVENT, sys.argv[1:])
except (ImportError, SyntaxError, AttributeError) as error:
    # Half of an update, for one: nobody is held by it, nor shown where in our code it broke.
    sys.stderr.write("harness: its %s hook holds nobody, as its folder is not whole: %s\n" % (EVENT, error))
    CODE = 0
sys.exit(CODE)
