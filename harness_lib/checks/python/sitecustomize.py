"""Let Python import from a work tree of harness what an environment names in the user's checkout.

Python runs this at its start, as `core.project.search_paths` puts this directory into PYTHONPATH.
HARNESS_SOURCES has pairs: a directory of the checkout, and the work tree's. The latter come last: otherwise a
file of the attempt could be imported in the place of a test runner.
Source: Python's documentation, `site`.
"""

import importlib
import os
import sys

HERE = os.path.realpath(os.path.dirname(__file__))


def _begin() -> None:
    places = os.environ["HARNESS_SOURCES"].split(os.pathsep)
    replaced = {HERE, *places[::2]}
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) not in replaced]
    ours = sys.modules.pop("sitecustomize")
    try:
        # That of the environment; one of the attempt would run in each test runner.
        importlib.import_module("sitecustomize")
    except ModuleNotFoundError:
        sys.modules["sitecustomize"] = ours
    sys.path += places[1::2]


if "HARNESS_SOURCES" in os.environ:
    _begin()
