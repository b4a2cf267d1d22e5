"""Lazy imports for a package's `__init__.py`: a name is imported from its module when it is first used.

A command that needs one name of a package then does not load the package's other modules.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def import_on_use(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """A `__getattr__` for `package` (PEP 562) that imports a name when it is first used.

    modules: the name → the module below `package` that defines it.
    """

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{modules[name]}"), name)

    return find
