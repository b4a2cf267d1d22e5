"""Which cell of a sweep each other cell is compared with: its base, which differs from it on one axis only."""

from __future__ import annotations

from collections.abc import Mapping

from harness.core.errors import UsageError
from harness.sweeps.cells import AXES, Sweep

OtherEntries = tuple[tuple[str, str], ...]
"""The entries of a cell on all axes but one, as (axis, name of the entry)."""


def columns_axis(sweep: Sweep) -> str | None:
    """The axis whose entries are the columns of a grid of one benchmark; None if the file has no axis that fits.

    The file names the axis as `columns`. Without that key, or with the benchmarks as columns, the axis is the first of
    servers, sampling, prompts and models that has several entries, or else the first of these that the file has.
    Checkpoints are rows, so the models of a sweep over checkpoints are columns only if the file says so.
    """
    if sweep.table.columns not in (None, "benchmarks"):
        return sweep.table.columns if sweep.table.columns in sweep.axes else None
    series = any(entry.checkpoint is not None for entry in sweep.axes.get("models", ()))
    order = ("servers", "sampling", "prompts", *(() if series else ("models",)))
    present = [axis for axis in order if axis in sweep.axes]
    long_axes = [axis for axis in present if len(sweep.axes[axis]) > 1]
    return next(iter([*long_axes, *present]), None)


def base_of(sweep: Sweep) -> tuple[str, str] | None:
    """The entry with which the other entries of its axis are compared, as (axis, name of the entry).

    The file names the entry as its base; None as long as it is a checkpoint to come. Without that key the entry is the
    first column of a grid; without a grid, the first entry of the first axis with several entries; None if there is no
    such axis.
    """
    if sweep.table.base is not None:
        entries = ((axis, entry.name) for axis in AXES for entry in sweep.axes.get(axis, ()))
        return next((entry for entry in entries if entry[1] == sweep.table.base), None)
    axis_of_columns = columns_axis(sweep) if sweep.table.layout == "grid" else None
    long_axes = [axis for axis in sweep.other_axes if len(sweep.axes[axis]) > 1]
    axis = axis_of_columns if axis_of_columns in long_axes else next(iter(long_axes), None)
    return None if axis is None else (axis, sweep.axes[axis][0].name)


def base_cells(sweep: Sweep) -> dict[str, str]:
    """Cell → the base cell of its row, which differs from it only on the axis of the base; none for a base itself."""
    if (base := base_of(sweep)) is None:
        return {}
    axis, name = base
    of_row = {without(axis, cell.point): cell.name for cell in sweep.cells if cell.point[axis] == name}
    named = {cell.name: of_row.get(without(axis, cell.point), cell.name) for cell in sweep.cells}
    return {cell: of_base for cell, of_base in named.items() if cell != of_base}


def read_cells(sweep: Sweep) -> dict[str, str]:
    """Cell → the base cell whose replies its server reads; a base reads its own. Empty if the file does not ask for it.

    Raises `UsageError` if the cells of a row have no base among the models or the servers.
    """
    if sweep.likelihood is None:
        return {}
    base, copies = base_of(sweep), base_cells(sweep)
    if base is None and sweep.checkpoints:  # The base may be a checkpoint to come.
        return {}
    if base is None or base[0] not in AXES[:2] or not copies:
        raise UsageError(
            f"{sweep.file.where(('likelihood',))}: copies read their base's replies, so `table: {{base: …}}` must name "
            "one of several models or servers"
        )
    return {name: name for name in copies.values()} | copies


def without(axis: str, point: Mapping[str, str]) -> OtherEntries:
    """The entries of a point on the other axes, as (axis, name of the entry)."""
    return tuple(entry for entry in point.items() if entry[0] != axis)
