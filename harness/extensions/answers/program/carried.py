"""The code of the sandbox as one text of Python, so that a sandbox needs no file of ours.

The text is an argument of `python -c`. It brings the modules of `inside` with it, in zlib and base64, and serves one
harness over its standard input and output.
"""

from __future__ import annotations

import base64
import json
import zlib
from functools import cache
from pathlib import Path

_PACKAGE = "harness.extensions.answers.program.inside"
"""The package whose modules are carried."""

# Python is started with -S, which hides all installed packages, so that a reply cannot pass by one that a machine
# happens to have. numpy alone is let through: tests of MBPP+ import it. For a tool, all that lie there are.
_TEXT = """
import base64, importlib.machinery, importlib.util, json, os, sys, sysconfig, zlib
sys.path[:] = [folder for folder in sys.path if folder]
SOURCES = json.loads(zlib.decompress(base64.b64decode({packed!r})))
class Carried:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy" or ({offered!r} and "." not in name and name not in SOURCES):
            folders = [{folder!r}, *(sysconfig.get_path(kind) for kind in ("purelib", "platlib"))]
            return importlib.machinery.PathFinder.find_spec(name, folders)
        if name not in SOURCES:
            return None
        return importlib.util.spec_from_loader(name, self, is_package=not SOURCES[name])
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        exec(compile(SOURCES[module.__name__], module.__name__, "exec", dont_inherit=True), module.__dict__)
sys.meta_path.append(Carried())
from {package} import cell
cell.serve({how}, packages={offered!r})
"""


PACKAGES = "/sandbox"
"""The folder in a sandbox in which packages are looked for, before the folders of the interpreter."""

OPTIONS = ["-s", "-S", "-B"]
"""Options of the Python in a sandbox. Not -I, which would ignore the hash seed."""

ENVIRONMENT = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Environment of the Python in a sandbox. A fixed hash seed gives sets one order, one thread gives one timing, so that
verdicts can be repeated."""


@cache
def python_text(how: str, offered: tuple[str, ...] = ()) -> str:
    """The text of Python that serves a sandbox. how: the arguments of `inside.cell.serve`. offered: the
    packages of a tool, imported at the start where they are there.
    """
    packages = _PACKAGE.split(".")
    sources = {".".join(packages[:end]): "" for end in range(1, len(packages) + 1)}
    for path in sorted((Path(__file__).parent / "inside").glob("*.py")):
        if path.stem != "__init__":
            sources[f"{_PACKAGE}.{path.stem}"] = path.read_text("utf-8")
    packed = base64.b64encode(zlib.compress(json.dumps(sources).encode(), 9)).decode()
    return _TEXT.format(packed=packed, package=_PACKAGE, folder=PACKAGES, how=how, offered=offered)
