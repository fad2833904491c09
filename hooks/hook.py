"""Answer the event of the script that runs this; the script sets `EVENT`, and its name is for hosts."""

# Everything here must parse on any old Python, so that a machine which has one is told so in one line.
import os
import sys

if sys.version_info < (3, 10):
    sys.stderr.write("harness: its hooks need Python 3.10 or newer, this is %d.%d.\n" % sys.version_info[:2])
    sys.exit(0)
# No byte code until its directory is known: nothing is written into this folder.
sys.dont_write_bytecode = True
# Behind the standard library, so that nothing here can replace a part of it.
sys.path.append(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
try:
    from harness_lib.hookio import entry

    CODE = entry.answer(EVENT, sys.argv[1:])
except (ImportError, SyntaxError, AttributeError) as error:
    # An update that was interrupted, for example: it holds no agent and shows no traceback.
    sys.stderr.write("harness: %s hook disabled: incomplete installation (%s)\n" % (EVENT, error))
    CODE = 0
sys.exit(CODE)
