"""A value for each field of the sampling, by its type: the one place that a field of a new type needs a line in."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

import pytest

from harness.presets.sampling import sampling_fields

VALUES: dict[Any, Any] = {float: 0.5, int: 99, bool: True, str: "a", tuple[str, ...]: ("a",)}


def every_field() -> dict[str, Any]:
    """Name of the field → a value that it takes; of a choice the first."""
    return {name: value_of(name, option.type) for name, option in sampling_fields().items()}


def value_of(name: str, type_: Any) -> Any:
    """A value of a type."""
    if get_origin(type_) is Literal:
        return get_args(type_)[0]
    if type_ not in VALUES:
        pytest.fail(f"the sampling field {name} is a {type_}: give VALUES in {__file__} a value of it", pytrace=False)
    return VALUES[type_]
