"""The stored plan of a race or a gate: after which samples it is looked at, also when it is started again.

Looks that are planned anew after some were taken would break the promised rate of false verdicts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.core import codec
from harness.core.errors import UsageError
from harness.core.files import read_record, write_atomically
from harness.core.inert import visible

MAX_BYTES = 1024 * 1024
"""Largest plan that is read, in bytes."""


def read(path: Path, what: str) -> dict[str, Any] | None:
    """The stored plan; None without one. what: "race" or "gate". Raises `StoreError` for a damaged file."""
    remedy = f"Put an intact copy back, or name another folder for the {what}."
    return read_record(path, dict[str, Any], MAX_BYTES, what=f"the plan of a {what}", remedy=remedy)


def settle(path: Path, plan: Mapping[str, Any], what: str, *, begun: bool) -> None:
    """Store the plan at the first start; later hold it against the stored one.

    begun: whether there are samples that were looked at. Raises `UsageError` if the two differ, or if there are such
    samples and no plan; `StoreError` as `read` does.
    """
    stored = read(path, what)
    if stored is None and begun:
        raise UsageError(
            f"{visible(str(path.parent), 200)} holds samples of a {what} and no {path.name}, which says when it is "
            f"looked at: name another folder for the {what}",
            field="out",
        )
    if stored is None:
        write_atomically(path, codec.pretty(plan))
    elif stored != plan:
        names = [name for name in {**stored, **plan} if stored.get(name) != plan.get(name)]
        # A gate's benchmarks are a mapping each: too long for a sentence.
        changed = ", ".join(
            f"other {name}" if isinstance(plan.get(name), Mapping) else f"{name} {stored.get(name)}" for name in names
        )
        raise UsageError(
            f"this {what} began with {visible(changed, 200)}, and its looks are planned once: give the same settings "
            f"again, or another `out` for a new {what}"
        )
