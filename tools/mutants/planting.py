"""Puts a mutant in the place of a module before the module is imported: in this process, and in processes that its
tests start.

A process that a test starts by `python -c` or `python -m` finds this file as `sitecustomize` in the folder that
`carry` puts into PYTHONPATH. Standard library only, for that reason. A process started with `-I` (by
`server_launchers.isolated`) imports the module as it is on disk.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType

MODULE = "MUTANT_MODULE"
SOURCE = "MUTANT_SOURCE"


class _Loader(SourceFileLoader):
    """An import loader that uses a given source in place of the file's own, and stores no bytecode."""

    def __init__(self, name: str, path: str, source: bytes) -> None:
        super().__init__(name, path)
        self._source = source

    def path_stats(self, path: str) -> dict[str, float]:
        raise OSError(f"{path} is not what is loaded")

    def get_data(self, path: str) -> bytes:  # noqa: ARG002 - as importlib has it
        return self._source


class _Finder(MetaPathFinder):
    def __init__(self, module: str, source: bytes) -> None:
        self._module = module
        self._source = source

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self._module:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.origin:
            spec.loader = _Loader(name, spec.origin, self._source)
        return spec


def plant(module: str, source: str) -> None:
    """Make each later import of the module use this source."""
    sys.meta_path.insert(0, _Finder(module, source.encode()))


def carry(module: str, source: str, folder: Path) -> None:
    """Give the source to processes that this one starts, too. folder: an empty folder, which stays until they have
    ended.
    """
    shutil.copy(__file__, folder / "sitecustomize.py")
    (folder / "mutant.py").write_text(source, "utf-8")
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ |= {MODULE: module, SOURCE: str(folder / "mutant.py"), "PYTHONPATH": os.pathsep.join(paths)}


if __name__ == "sitecustomize" and MODULE in os.environ:
    plant(os.environ[MODULE], Path(os.environ[SOURCE]).read_text("utf-8"))
