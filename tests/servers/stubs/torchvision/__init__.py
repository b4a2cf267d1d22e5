"""Stands in for torchvision where only text models are served: its wheels are built for CUDA, SGLang imports it anyhow.

Every submodule can be imported and every name in it is a class that does nothing; whoever transforms an image with it
gets an instance of that class, not an image.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence

__version__ = "0.0"


class _Namespace(type):
    """Attributes of a stand-in are stand-ins again: `InterpolationMode.BICUBIC`."""

    def __getattr__(cls, name: str) -> object:
        return _stand_in(name)


def _stand_in(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Namespace(name, (), {"__init__": lambda self, *arguments, **options: None})


class _Submodules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.startswith(f"{__name__}."):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        vars(module)["__getattr__"] = _stand_in


sys.meta_path.append(_Submodules())


def __getattr__(name: str) -> object:
    return _stand_in(name)
