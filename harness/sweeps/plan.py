"""The plan of a sweep: its cells, which of them share a server, and what each is compared with.

A cell is one run: a model, a server, a prompt, sampling settings and a benchmark.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.core.errors import UsageError
from harness.options.judge import JudgeOptions
from harness.options.run import RunOptions
from harness.presets.grading import GradingOptions
from harness.runs.sweep_cell import JOIN
from harness.sweeps import schema
from harness.sweeps.file import Checkpoint, Entry, SweepFile
from server_launchers.engines.table import by_name

AXES = ("models", "servers", "prompts", "sampling", "benchmarks")
"""The axes of a sweep, in the order in which they form a cell's name."""

LOADS = ("concurrency", "rate")
"""The keys of a file with the loads of a load curve: numbers of requests in flight, or requests per second."""

OtherEntries = tuple[tuple[str, str], ...]
"""The entries of a cell on all axes except one, as (axis, name of the entry)."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One run of a sweep. name: name of the cell and of its folder. point: axis → name of the entry, for the axes in
    the file.

    options: options of the run; their `serve` describes the server that is started for it and for the cells of its
    group (`Sweep.groups`), and is None if a running server is used. where: file and line of its benchmark. checkpoint:
    the checkpoint that it runs; None for any other model. curve: for a checkpoint, the name of its curve (accuracy over
    steps): the training run and the entries of the other axes, without the benchmark.
    """

    name: str
    point: Mapping[str, str]
    options: RunOptions
    where: str
    checkpoint: Checkpoint | None
    curve: str

    @property
    def benchmark(self) -> str:
        """The name of the entry of its benchmark."""
        return self.point["benchmarks"]

    @property
    def model(self) -> str:
        """The model that is requested; empty for the only model of a running server."""
        return self.options.model or ""


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """The plan of a sweep.

    file: the file that the plan was made from. axes: every entry of every axis in the file, in order. cells: the cells,
    grouped by server, in the order of the file's models and servers. likelihood: options for reading the base's
    replies; None if they are not read. suite: the published suite that the sweep reproduces; None if the file has none.
    track: names of the trackers that receive each cell's scores. remarks: what a person should know about the plan,
    such as paths that match a pattern but are not checkpoints.
    """

    file: SweepFile
    name: str
    out: Path
    axes: Mapping[str, Sequence[Entry]]
    cells: tuple[Cell, ...]
    score: GradingOptions
    judge: JudgeOptions | None
    table: schema.TableOptions
    likelihood: Mapping[str, Any] | None
    suite: schema.Suite | None
    track: Sequence[str] = ()
    remarks: Sequence[str] = ()

    @property
    def groups(self) -> dict[str, list[Cell]]:
        """The cells, in order, by the group that shares one server. A group is named after its model and server."""
        groups: dict[str, list[Cell]] = {}
        for cell in self.cells:
            groups.setdefault(self.group_of(cell), []).append(cell)
        return groups

    def group_of(self, cell: Cell) -> str:
        """The name of the group of cells that use this cell's server."""
        return JOIN.join(cell.point[axis] for axis in AXES[:2] if axis in cell.point) or self.name

    def conditions(self, cell: Cell) -> dict[str, schema.Scalar]:
        """How the cell's server changes what is measured, as specified by the suite."""
        return self.suite.conditions.get(cell.point.get("servers", ""), {}) if self.suite is not None else {}

    @property
    def averaged(self) -> list[Entry]:
        """The benchmarks that are included in a suite's mean."""
        names = self.suite.mean_of if self.suite is not None else None
        return [entry for entry in self.axes["benchmarks"] if names is None or entry.name in names]

    @property
    def other_axes(self) -> list[str]:
        """The file's axes other than the benchmarks, in order."""
        return [axis for axis in AXES[:-1] if axis in self.axes]

    @property
    def checkpoints(self) -> list[Checkpoint]:
        """The checkpoints among the models of the sweep."""
        return [entry.checkpoint for entry in self.axes.get("models", ()) if entry.checkpoint is not None]

    @cached_property
    def columns_axis(self) -> str | None:
        """The axis whose entries are the columns of a grid for one benchmark; None if the file has no suitable axis.

        The file names the axis as `columns`. Without that key, or with the benchmarks as columns, it is the first of
        servers, sampling, prompts and models that has several entries, or otherwise the first of these in the file.
        Checkpoints are rows, so the models of a sweep over checkpoints are columns only if the file says so.
        """
        if self.table.columns not in (None, "benchmarks"):
            return self.table.columns if self.table.columns in self.axes else None
        order = ("servers", "sampling", "prompts", *(() if self.checkpoints else ("models",)))
        present = [axis for axis in order if axis in self.axes]
        return next(iter([*(axis for axis in present if len(self.axes[axis]) > 1), *present]), None)

    def gpus(self, cell: Cell) -> int | None:
        """The number of GPUs of the cell's server, as specified in the file or by how the sweep starts it; None if
        unknown.
        """
        stated: int | None = self.file.content.get("gpus")
        spec = cell.options.serve
        if stated is not None or spec is None or by_name(spec["engine"]).devices != "sliced":
            return stated
        return math.prod(int(spec.get(name) or 1) for name in ("tp", "pp", "dp"))

    @property
    def is_load_curve(self) -> bool:
        """Whether the file lists loads."""
        return any(name in self.file.content for name in LOADS)

    @property
    def load_key(self) -> str:
        """The key in the file with the loads."""
        return "rate" if "rate" in self.file.content else "concurrency"

    def load(self, cell: Cell) -> float:
        """The load of a cell: requests per second, or the largest number in flight."""
        return getattr(cell.options, self.load_key) or 0

    def configuration(self, cell: Cell, axes: Collection[str] = AXES) -> str:
        """The labels of the cell on those of these axes that have several entries, without its load."""
        several = [axis for axis in axes if len(self.axes.get(axis, ())) > 1]
        labels = [self.label(axis, cell.point[axis]) for axis in several]
        load = f"{self.load_key} {self.load(cell)}"
        return " ".join(filter(None, (label.removesuffix(load).rstrip() for label in labels)))

    @cached_property
    def base(self) -> tuple[str, str] | None:
        """The entry that the other entries of its axis are compared with, as (axis, name of the entry).

        The file names the entry as `base`. Without that key, the entry is the first column of a grid or, without a
        grid, the first entry of the first axis with several entries, or None if there is no such axis. A load curve has
        no base entry: see `base_cells`.
        """
        if self.table.base is not None:
            entries = ((axis, entry.name) for axis in AXES for entry in self.axes.get(axis, ()))
            return next(entry for entry in entries if entry[1] == self.table.base)
        if self.is_load_curve:
            return None
        long_axes = [axis for axis in self.other_axes if len(self.axes[axis]) > 1]
        columns = self.columns_axis if self.table.layout == "grid" else None
        axis = columns if columns in long_axes else next(iter(long_axes), None)
        return None if axis is None else (axis, self.axes[axis][0].name)

    @cached_property
    def base_cells(self) -> dict[str, str]:
        """Cell → the base cell of its row, which differs from it only on the base's axis; base cells are not included.

        In a load curve without a specified base, the base cell is the first configuration at its lowest load, on each
        benchmark.
        """
        if self.base is not None:
            axis, name = self.base
            of_row = {without(axis, cell.point): cell.name for cell in self.cells if cell.point[axis] == name}
            named = {cell.name: of_row.get(without(axis, cell.point), cell.name) for cell in self.cells}
        elif self.is_load_curve:
            lowest, first = dict[str, str](), dict[str, str]()
            for cell in sorted(self.cells, key=self.load):
                lowest.setdefault(self.configuration(cell), cell.name)
            for cell in self.cells:
                first.setdefault(cell.benchmark, lowest[self.configuration(cell)])
            named = {cell.name: first[cell.benchmark] for cell in self.cells}
        else:
            return {}
        return {cell: of_base for cell, of_base in named.items() if cell != of_base}

    @cached_property
    def read_cells(self) -> dict[str, str]:
        """Cell → the base cell whose stored replies its server reads, to find how likely they are under its model.

        A base reads its own replies. Empty if the file does not request this. Raises `UsageError` if the cells of a row
        have no base among the models or the servers.
        """
        if self.likelihood is None:
            return {}
        if self.base is None or self.base[0] not in AXES[:2] or not self.base_cells:
            raise UsageError(
                f"{self.file.where(('likelihood',))}: copies are compared using their base's replies, so "
                "`table: {base: …}` must name one of several models or servers"
            )
        return {name: name for name in self.base_cells.values()} | self.base_cells

    def folder(self, cell: Cell) -> Path:
        """The cell's run folder."""
        return self.out / cell.name

    def label(self, axis: str, name: str) -> str:
        """The label of an axis's entry `name` in tables."""
        return next((entry.label for entry in self.axes.get(axis, ()) if entry.name == name), name)


def without(axis: str, point: Mapping[str, str]) -> OtherEntries:
    """The entries of a point on all axes except this one."""
    return tuple(entry for entry in point.items() if entry[0] != axis)
