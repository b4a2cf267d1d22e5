"""Scores as tables and pages. Reads run folders, writes nothing; foreign text comes out as text in every format."""

from harness.reports.formats import to_csv, to_latex, to_markdown, to_terminal
from harness.reports.report import Report, report
from harness.reports.tables import endpoint_table, sample_table, score_table, speed_table

__all__ = [
    "Report",
    "endpoint_table",
    "report",
    "sample_table",
    "score_table",
    "speed_table",
    "to_csv",
    "to_latex",
    "to_markdown",
    "to_terminal",
]
