"""The descriptions of a class's fields: the docstrings below them, in options and in records.

Python does not keep docstrings of fields, so the source is read, but only when a description is shown.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from functools import cache
from itertools import pairwise


def field_docs(module: str, name: str) -> Mapping[str, str]:
    """Field → the first paragraph of the docstring below it, as one line, for the fields of the class `name`."""
    return _of_module(module)[name]


def record_docs(record: type) -> dict[str, str]:
    """A field of a record or its bases, also under its name in JSON → its description, as in `field_docs`."""
    owners = [base for base in reversed(record.__mro__) if inspect.get_annotations(base)]
    docs = {field: text for base in owners for field, text in field_docs(base.__module__, base.__name__).items()}
    fields = zip(getattr(record, "__struct_fields__", ()), getattr(record, "__struct_encode_fields__", ()), strict=True)
    return docs | {encoded: docs[field] for field, encoded in fields if field in docs}


@cache
def _of_module(module: str) -> Mapping[str, Mapping[str, str]]:
    """Class → field → description, for every class at the top level of the module."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: _of_class(node) for node in tree.body if isinstance(node, ast.ClassDef)}


def _of_class(node: ast.ClassDef) -> Mapping[str, str]:
    """Field → description, for the fields of one class that have a description."""
    return {
        target.id: " ".join(below.value.value.partition("\n\n")[0].split())
        for field, below in pairwise(node.body)
        if isinstance(field, ast.AnnAssign | ast.Assign)
        for target in (field.targets if isinstance(field, ast.Assign) else [field.target])
        if isinstance(target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str)
    }
