"""A table for a terminal, as wide as the console: it breaks no number, and no word that has room."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from harness.core.inert import visible

_MIN_NAME = 8
"""Smallest width of a column of names."""


class Fitted:
    """Rows under headings; foreign text in them is made visible.

    Columns that have no room beside the others stand in a further table below, with the names again.

    numeric: the right-aligned columns, whose cells are never broken. names: the columns that begin each table; together
    they take at most half of the width, and break longer words.
    """

    def __init__(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[str]],
        *,
        numeric: Collection[int] = (),
        names: Collection[int] = (0,),
    ) -> None:
        self._numeric, self._names = numeric, names
        self._cells = list(zip(*(map(visible, row) for row in (columns, *rows)), strict=True))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # Each column takes a space before and after it.
        least = [min(self._least(number), options.max_width - 2) for number in range(len(self._cells))]
        for number in self._names:
            least[number] = min(least[number], max(_MIN_NAME, options.max_width // (2 * len(self._names)) - 2))
        parts: list[list[int]] = [[]]
        left = room = options.max_width - sum(least[number] + 2 for number in self._names)
        for number in range(len(self._cells)):
            if number in self._names:
                continue
            if least[number] + 2 > left and parts[-1]:
                parts.append([])
                left = room
            parts[-1].append(number)
            left -= least[number] + 2
        for part in parts:
            numbers = sorted([*self._names, *part])
            yield self._table(numbers, self._widths(numbers, least, options.max_width))

    def _least(self, number: int) -> int:
        """The width at which the column breaks neither a word nor, if it is numeric, a cell."""
        heading, *cells = self._cells[number]
        whole = cells if number in self._numeric else [word for cell in cells for word in cell.split()]
        return max(map(cell_len, [*heading.split(), *whole]), default=1) or 1

    def _widths(self, numbers: Sequence[int], least: Sequence[int], max_width: int) -> list[int]:
        """The widths of some columns: what is left of max_width goes to those that would need further lines."""
        left = max_width - sum(least[number] + 2 for number in numbers)
        lacking = {number: max(map(cell_len, self._cells[number])) - least[number] for number in numbers}
        widths = {number: least[number] for number in numbers}
        wide = sorted((number for number in numbers if number not in self._numeric), key=lacking.__getitem__)
        for place, number in enumerate(wide):
            more = max(0, min(lacking[number], left // (len(wide) - place)))
            widths[number] += more
            left -= more
        return [widths[number] for number in numbers]

    def _table(self, numbers: Sequence[int], widths: Sequence[int]) -> Table:
        shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        for number, width in zip(numbers, widths, strict=True):
            heading = "\n".join(textwrap.wrap(self._cells[number][0], width))
            shown.add_column(
                Text(heading), width=width, overflow="fold", justify="right" if number in self._numeric else "left"
            )
        for row in zip(*(self._cells[number][1:] for number in numbers), strict=True):
            shown.add_row(*map(Text, row))
        return shown
