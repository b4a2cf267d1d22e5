"""The console, and tables fitted to its width that break no numbers, and words only if they are too wide."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from harness.core.sanitize import visible

_MIN_NAME = 8
"""Minimum width of a name column."""


class PlainConsole(Console):
    """A console that prints text unchanged: it interprets no markup and adds no colors.

    It is as wide as the terminal, or as the environment variable COLUMNS specifies; without either, it has 80 columns.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, highlight=False, emoji=False)

    def on_broken_pipe(self) -> None:
        """Let the command line end the process; rich would end it with code 1."""
        raise BrokenPipeError


class Fitted:
    """Rows under headings; untrusted text in them is made inert.

    Columns that do not fit are printed in another table below, which repeats the names.

    numeric: the right-aligned columns, whose cells are never broken. names: the first columns of each table; together
    they take up at most half of the width, and longer words are broken.
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
        # By column, starting with the heading.
        self._cells = list(zip(*(map(visible, row) for row in (columns, *rows)), strict=True))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the tables. Each has the names and as many of the remaining columns as fit, but at least one."""
        # Each column needs one space before and after it.
        most = max(_MIN_NAME, options.max_width // (2 * max(1, len(self._names))) - 2)
        least = {column: self._min_width(column, most) for column in self._names}
        room = options.max_width - sum(width + 2 for width in least.values())
        waiting = [column for column in range(len(self._cells)) if column not in self._names]
        least |= {column: self._min_width(column, room - 2) for column in waiting}
        while True:
            spare, shown = room, list(self._names)
            while waiting and (least[waiting[0]] + 2 <= spare or len(shown) == len(self._names)):
                spare -= least[waiting[0]] + 2
                shown.append(waiting.pop(0))
            yield self._table(sorted(shown), least, spare)
            if not waiting:
                return

    def _min_width(self, column: int, most: int) -> int:
        """The width at which no word (or, in a numeric column, no cell) is broken, but at most `most`."""
        heading, *cells = self._cells[column]
        whole = cells if column in self._numeric else [word for cell in cells for word in cell.split()]
        return max(1, min(most, max(map(cell_len, [*heading.split(), *whole]), default=1)))

    def _table(self, columns: Sequence[int], least: dict[int, int], spare: int) -> Table:
        """These columns as a table. spare: width in addition to the columns' minimum widths. It is given to the columns
        that would break text, the smallest shortage first, and in equal shares if it is not enough for all.
        """
        widths = dict(least)
        lacking = {n: max(map(cell_len, self._cells[n])) - least[n] for n in columns if n not in self._numeric}
        for n_served, column in enumerate(sorted(lacking, key=lacking.__getitem__)):
            share = spare // (len(lacking) - n_served)
            more = max(0, min(lacking[column], share))
            widths[column] += more
            spare -= more
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        for column in columns:
            side: Literal["left", "right"] = "right" if column in self._numeric else "left"
            table.add_column(Text(self._cells[column][0]), width=widths[column], overflow="fold", justify=side)
        for row in zip(*(self._cells[column][1:] for column in columns), strict=True):
            table.add_row(*(Text(_broken(cell, widths[n])) for n, cell in zip(columns, row, strict=True)))
        return table


def _broken(cell: str, width: int) -> str:
    """The cell in lines of at most `width`; wider words are broken after hyphens, dots, slashes and underscores."""
    lines = [""]
    for word in re.findall(r"\S+\s*", cell):
        for piece in [word] if cell_len(word.rstrip()) <= width else re.findall(r"[^-_./]+[-_./]*|[-_./]+", word):
            if lines[-1] and cell_len(lines[-1] + piece.rstrip()) > width:
                lines.append("")
            lines[-1] += piece
    return "\n".join(map(str.rstrip, lines))
