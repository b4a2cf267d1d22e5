"""Scores as tables and pages. Reads run folders and writes nothing; foreign text stays inert text in every format.

`report` makes whole reports; `tables` makes single tables, which `formats` writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.core import late

if TYPE_CHECKING:
    from harness.reports.formats import to_csv, to_latex, to_markdown, to_terminal
    from harness.reports.report import Report
    from harness.reports.tables import (
        budget_table,
        endpoint_table,
        over_k_table,
        sample_table,
        score_table,
        speed_table,
    )

__all__ = [
    "Report",
    "budget_table",
    "endpoint_table",
    "over_k_table",
    "sample_table",
    "score_table",
    "speed_table",
    "to_csv",
    "to_latex",
    "to_markdown",
    "to_terminal",
]

__getattr__ = late.import_on_use(
    __name__,
    {
        "Report": "report",
        "budget_table": "tables",
        "endpoint_table": "tables",
        "over_k_table": "tables",
        "sample_table": "tables",
        "score_table": "tables",
        "speed_table": "tables",
        "to_csv": "formats",
        "to_latex": "formats",
        "to_markdown": "formats",
        "to_terminal": "formats",
    },
)
