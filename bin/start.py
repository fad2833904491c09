"""Start the program that runs this, `harness` or `hs` (it sets `PROGRAM`), with the packages it needs."""

# Everything here must parse on any old Python, so that a machine which has one is told so in one line.
import gc
import os
import sys

CHECKOUT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
ENV_SETUP = 7


def fail(message, hint):
    sys.stderr.write("%s: %s %s\n" % (PROGRAM, message, hint))
    if PROGRAM == "harness" and "--json" in sys.argv:
        import json

        verbs = [word for word in sys.argv[1:] if not word.startswith("-")]
        reply = dict.fromkeys(["session", "task", "stop", "next"])
        reply.update(ok=False, verb=verbs[0] if verbs else "harness", exit=ENV_SETUP, message=message)
        reply["error"] = {"kind": "ENV_SETUP", "message": message, "hint": hint}
        print(json.dumps(reply))
    sys.exit(ENV_SETUP)


def works(python):
    """Return whether it runs: version managers put names on the PATH that only complain."""
    import subprocess

    test = [python, "-I", "-S", "-c", "import sys; sys.exit(sys.version_info < (3, 10))"]
    with open(os.devnull, "w") as nowhere:
        return subprocess.call(test, stdin=nowhere, stdout=nowhere, stderr=nowhere) == 0


def start_newer_python():
    for minor in range(15, 9, -1):
        for folder in os.environ.get("PATH", "").split(os.pathsep):
            python = os.path.join(folder, "python3.%d" % minor)
            # A relative entry of the PATH leads into the user's project.
            if os.path.isabs(python) and os.access(python, os.X_OK) and works(python):
                os.execv(python, [python, "-I", "-S"] + sys.argv)
    version = "%d.%d (%s)" % (sys.version_info[:2] + (sys.executable,))
    fail("Python %s is too old, and no newer one is on the PATH." % version, "Install Python 3.10 or newer.")


def enter(*requirements):
    """Put the packages of this program on the path; make them first if need be."""
    from harness_lib.system.place import data_home

    # Before anything else is imported, which would have to be compiled at each start.
    data_home.use_byte_code(os.environ)
    from harness_lib.errors import EnvSetupError
    from harness_lib.system.install import launcher

    try:
        launcher.enter(os.environ, os.path.join(CHECKOUT, "bin", PROGRAM), *requirements)
    except EnvSetupError as error:
        # `harness doctor` examines the machine, and needs no package.
        if PROGRAM != "harness" or "doctor" not in sys.argv[1:]:
            fail(error.message, error.hint)
        sys.stderr.write("harness: %s %s\n" % (error.message, error.hint))


def harness():
    enter()
    from harness_lib.__main__ import begin

    return begin()


def hs():
    if sys.argv[1:] in (["version"], ["--version"], ["-v"]):
        from harness_lib.hs.__main__ import version

        if version(os.environ):
            return 0
    from pathlib import Path

    # While modules are loaded nothing becomes garbage; a long session is still cleaned up.
    gc.set_threshold(100000)
    enter(Path(CHECKOUT, "harness_lib", "loop", "requirements.txt"))
    from harness_lib.hs.main import entry

    return entry()


if sys.version_info < (3, 10):
    start_newer_python()
# No byte code until its directory is known: nothing is written into this folder.
sys.dont_write_bytecode = True
# Behind the standard library, so that nothing here can replace a part of it.
sys.path.append(CHECKOUT)
sys.exit(harness() if PROGRAM == "harness" else hs())
