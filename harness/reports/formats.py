"""Tables as terminal output, Markdown, LaTeX and CSV. Each format escapes what is special to it."""

from __future__ import annotations

import csv
import io
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table as RichTable
from rich.text import Text

from harness.core.inert import csv_cell, visible
from harness.reports.tables import Table
from harness.scoring.columns import column_names, numbers
from harness.scoring.score import Score

_MIN_NAME = 8
"""Smallest width of a column of names in a terminal."""

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "≤": r"$\leq$",
    "×": r"$\times$",
    "–": "--",
    "−": "$-$",
    "→": r"$\to$",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def to_terminal(tables: Sequence[Table]) -> RenderableType:
    """The tables for a rich console; foreign text is never console markup and holds no control character."""
    parts: list[RenderableType] = []
    for table in tables:
        parts += [Text(visible(table.title), style="bold"), _Fitted(table)]
        parts.extend(Text(f"[{number}] {visible(note)}", style="dim") for number, note in enumerate(table.notes, 1))
        parts.append(Text(""))
    return Group(*parts[:-1])


class _Fitted:
    """A table that fits the width of its console: long names are broken into lines, numbers never.

    Columns of numbers that have no room beside the others stand in a second table below, with the names again.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = self._table
        # Numeric column → the width at which neither a word of its heading nor a number is broken.
        least = {
            number: max(map(cell_len, [*heading.split(" "), *(visible(row[number]) for row in table.rows)]))
            for number, heading in enumerate(table.columns)
            if number in table.numeric
        }
        names = [number for number in range(len(table.columns)) if number not in least]
        # Each column takes a space before and after it.
        parts, room = [list(names)], options.max_width - (_MIN_NAME + 2) * len(names)
        left = room
        for number, width in least.items():
            if width + 2 > left and parts[-1] != names:
                parts.append(list(names))
                left = room
            parts[-1].append(number)
            left -= width + 2
        yield from (self._part(sorted(numbers), least) for numbers in parts)

    def _part(self, numbers: Sequence[int], least: Mapping[int, int]) -> RichTable:
        """Some columns as a table of their own. least: numeric column → its width."""
        shown = RichTable(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        for number in numbers:
            heading = visible(self._table.columns[number])
            if number in least:
                lines = "\n".join(textwrap.wrap(heading, least[number]))
                shown.add_column(Text(lines), justify="right", overflow="fold", no_wrap=True)
            else:
                shown.add_column(Text(heading), overflow="fold")
        for row in self._table.rows:
            shown.add_row(*(Text(visible(row[number])) for number in numbers))
        return shown


def to_markdown(tables: Sequence[Table]) -> str:
    """The tables in GitHub's Markdown, with their titles and numbered notes."""
    blocks = []
    for table in tables:
        ruler = ("---:" if column in table.numeric else "---" for column in range(len(table.columns)))
        lines = [f"**{_markdown(table.title)}**", "", _markdown_row(table.columns), f"| {' | '.join(ruler)} |"]
        lines += [_markdown_row(row) for row in table.rows]
        if table.notes:
            lines += ["", *(f"{number}. {_markdown(note)}" for number, note in enumerate(table.notes, 1))]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def commands_in_markdown(commands: Sequence[tuple[str, str]]) -> str:
    """The (run label, line) pairs of the commands that repeat runs, in Markdown after the tables; empty without any."""
    if not commands:
        return ""
    # Indented by four: a code block, whatever the command holds.
    lines = "".join(f"    {visible(line)}\n" for _, line in commands)
    return f"\n**To have it again**\n\n{lines}"


def to_latex(tables: Sequence[Table]) -> str:
    r"""Write tables as LaTeX floats with caption, label and notes; they need `\usepackage{booktabs}`."""
    blocks = []
    for place, table in enumerate(tables, 1):
        shape = "".join("r" if column in table.numeric else "l" for column in range(len(table.columns)))
        lines = [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_latex(table.title)}}}",
            rf"\label{{tab:harness-{place}}}",
        ]
        lines += [rf"\begin{{tabular}}{{{shape}}}", r"\toprule", _latex_row(table.columns), r"\midrule"]
        lines += [*(_latex_row(row) for row in table.rows), r"\bottomrule", r"\end{tabular}"]
        # In a group, so that the text behind keeps its size.
        notes = [rf"\par [{number}] {_latex(note)}" for number, note in enumerate(table.notes, 1)]
        lines += [r"{\footnotesize", *notes, r"\par}"] if notes else []
        lines.append(r"\end{table}")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def to_csv(scores: Sequence[tuple[str, str, Score]]) -> str:
    """One line per (run label, model, score) with every number of the score as a fraction; empty cells are unknown.

    Text cells never start a formula. pass@k, pass^k and maj@k become a column for each k that occurs, the accuracy
    within a budget columns for each budget; 95 % intervals have columns that end in _low and _high.
    """
    columns = column_names([score for _, _, score in scores])
    rows: list[list[object]] = [["run", "model", "benchmark", *columns, "warnings"]]
    for label, model, score in scores:
        row = numbers(score)
        warnings = "; ".join(score.sentences)
        rows.append([label, model, score.benchmark, *(row.get(name) for name in columns), warnings])
    return _csv(rows)


def to_breakdown_csv(scores: Sequence[tuple[str, str, Score]]) -> str:
    """One line per (run label, model, score) and group of its questions: the numbers of the group, as fractions.

    column: the metadata field that groups the questions, such as a level; value: what the questions of the group have
    there. n_answered: questions with a sample. Text cells never start a formula.
    """
    groups = [
        ([label, model, score.benchmark, column, value], numbers(group))
        for label, model, score in scores
        for column, by_value in score.breakdowns.items()
        for value, group in by_value.items()
    ]
    columns = list(dict.fromkeys(name for _, row in groups for name in row))
    rows: list[list[object]] = [["run", "model", "benchmark", "column", "value", *columns]]
    return _csv([*rows, *([*texts, *(row.get(name) for name in columns)] for texts, row in groups)])


def _csv(rows: Iterable[Sequence[object]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerows([csv_cell(visible(cell)) if isinstance(cell, str) else cell for cell in row] for row in rows)
    return buffer.getvalue()


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_markdown, cells))} |"


def _markdown(text: str) -> str:
    """The text as a cell of a Markdown table: inert, with all special characters escaped."""
    # & first, or the entities made next would be escaped again.
    escaped = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # Without these characters no link, emphasis, code or end of a cell can begin.
    return re.sub(r"([\\`*_|\[\]~!])", r"\\\1", escaped)


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(map(_latex, cells)) + r" \\"


def _latex(text: str) -> str:
    """The text in LaTeX: inert, with all special characters escaped."""
    return "".join(_LATEX.get(character, character) for character in visible(text))
