"""Formats tables as terminal output, Markdown, LaTeX and CSV. Each format escapes its own special characters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from harness.core.files import write_atomically
from harness.core.sanitize import csv_file, csv_text, visible
from harness.reports.console import Fitted
from harness.reports.table import Table
from harness.scoring.score import Score
from harness.scoring.table_cells import column_names, numbers

_NAME_COLUMNS = range(2)
"""The first columns, which name a row if they contain words, such as run and benchmark."""

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
    """The tables for a rich console; untrusted text is never console markup and contains no control characters."""
    parts: list[RenderableType] = []
    for table in tables:
        # If a table is too wide, its remaining columns are printed below, with the names repeated.
        named = (column for column in _NAME_COLUMNS if column < table.n_names or column not in table.numeric)
        names = [column for column in named if column < len(table.columns)]
        fitted = Fitted(table.columns, table.rows, numeric=table.numeric, names=names)
        parts += [Text(visible(table.title), style="bold"), *([fitted] if table.rows else [])]
        parts.extend(Text(f"[{number}] {visible(note)}", style="dim") for number, note in enumerate(table.notes, 1))
        parts.append(Text(""))
    return Group(*parts[:-1])


def to_markdown(tables: Sequence[Table]) -> str:
    """The tables as GitHub Markdown, with their titles and numbered notes."""
    blocks = []
    for table in tables:
        ruler = ("---:" if column in table.numeric else "---" for column in range(len(table.columns)))
        lines = [f"**{in_markdown(table.title)}**"]
        if table.rows:
            lines += ["", _markdown_row(table.columns), f"| {' | '.join(ruler)} |", *map(_markdown_row, table.rows)]
        if table.notes:
            lines += ["", *(f"{number}. {in_markdown(note)}" for number, note in enumerate(table.notes, 1))]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def commands_in_markdown(commands: Sequence[tuple[str, str]]) -> str:
    """The commands that repeat runs, given as (run label, line), as Markdown to follow the tables; empty if there are
    none.
    """
    if not commands:
        return ""
    # An indent of four makes a code block, whatever the command contains.
    lines = "".join(f"    {visible(line)}\n" for _, line in commands)
    return f"\n**Reproduce it**\n\n{lines}"


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
        # In a group, so that the following text keeps its size.
        notes = [rf"\par [{number}] {_latex(note)}" for number, note in enumerate(table.notes, 1)]
        lines += [r"{\footnotesize", *notes, r"\par}"] if notes else []
        lines.append(r"\end{table}")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def to_csv(scores: Sequence[tuple[str, str, Score]]) -> str:
    """One line per (run label, model, score) with every number of the score as a fraction; empty cells are unknown.

    Text cells never start a formula. pass@k, pass^k and maj@k have a column for each k that occurs, and the accuracy
    within a budget has columns for each budget; 95% intervals have columns that end in _low and _high.
    """
    columns = column_names([score for _, _, score in scores])
    rows: list[list[object]] = [["run", "model", "benchmark", *columns, "warnings"]]
    for label, model, score in scores:
        row = numbers(score)
        warnings = "; ".join(score.sentences)
        rows.append([label, model, score.benchmark, *(row.get(name) for name in columns), warnings])
    return csv_text(rows)


def to_breakdown_csv(scores: Sequence[tuple[str, str, Score]]) -> str:
    """One line per (run label, model, score) and group of its questions: the numbers of the group, as fractions.

    column: the metadata field that groups the questions, such as a level. value: the field's value in the group.
    n_answered: number of questions with a sample. warnings: warnings about the whole score. Text cells never start a
    formula.
    """
    groups = [
        ([label, model, score.benchmark, column, value], numbers(group), "; ".join(score.sentences))
        for label, model, score in scores
        for column, by_value in score.breakdowns.items()
        for value, group in by_value.items()
    ]
    columns = list(dict.fromkeys(name for _, row, _ in groups for name in row))
    rows: list[list[object]] = [["run", "model", "benchmark", "column", "value", *columns, "warnings"]]
    return csv_text([*rows, *([*texts, *map(row.get, columns), warnings] for texts, row, warnings in groups)])


def write_files(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write the text of each of these files, by name, to `folder`; return their paths. Raises `StoreError`."""
    for name, text in texts.items():
        content = csv_file(text) if name.endswith(".csv") else text.encode("utf-8", "backslashreplace")
        write_atomically(folder / name, content)
    return [folder / name for name in texts]


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(in_markdown, cells))} |"


def in_markdown(text: str) -> str:
    """The text as a cell of a Markdown table: inert, with all special characters escaped."""
    # & comes first, or the entities produced next would be escaped again.
    escaped = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # Without these characters, no link, emphasis, code or cell end can start.
    return re.sub(r"([\\`*_|\[\]~!])", r"\\\1", escaped)


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(map(_latex, cells)) + r" \\"


def _latex(text: str) -> str:
    """The text as LaTeX: inert, with all special characters escaped."""
    return "".join(_LATEX.get(character, character) for character in visible(text))
