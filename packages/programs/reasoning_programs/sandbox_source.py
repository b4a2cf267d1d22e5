"""The sandbox code as a single Python source text, so that a sandbox needs none of our files.

The text is an argument of `python -c`. It contains the modules of `inside`, compressed with zlib and encoded in base64,
and serves one caller over standard input and output.
"""

from __future__ import annotations

import base64
import json
import zlib
from functools import cache
from pathlib import Path

_PACKAGE = "reasoning_programs.inside"
"""The package whose modules the text contains."""

# Python is started with -S, which hides all installed packages, so that a reply cannot pass by using one that a machine
# happens to have. Only numpy is allowed, because MBPP+ tests import it. For a tool, all packages in the folder are
# allowed.
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
"""The folder in a sandbox that is searched for packages before the interpreter's folders."""

OPTIONS = ["-s", "-S", "-B"]
"""Options of the Python in a sandbox. Not -I, which would ignore the hash seed."""

ENVIRONMENT = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Environment of the Python in a sandbox. A fixed hash seed makes the order of sets reproducible, and a single thread
makes timing reproducible, so that verdicts are repeatable."""


@cache
def python_text(how: str, offered: tuple[str, ...] = ()) -> str:
    """The Python source text that serves a sandbox. how: the arguments of `inside.cell.serve`. offered: the packages of
    a tool, imported at startup if available.
    """
    packages = _PACKAGE.split(".")
    sources = {".".join(packages[:end]): "" for end in range(1, len(packages) + 1)}
    for path in sorted((Path(__file__).parent / "inside").glob("*.py")):
        if path.stem != "__init__":
            sources[f"{_PACKAGE}.{path.stem}"] = path.read_text("utf-8")
    packed = base64.b64encode(zlib.compress(json.dumps(sources).encode(), 9)).decode()
    return _TEXT.format(packed=packed, package=_PACKAGE, folder=PACKAGES, how=how, offered=offered)
