"""A graded run in the formats of other tools: training data, tables, and their own files of results.

Enter by `export`, and `EXPORTERS` for what there is; `trackers.track` tells an experiment tracker of the scores.
"""

from harness.exports.choice import Choice, Chosen, File, Row, Take
from harness.exports.exporting import EXPORTERS, Exporter, Written, export

__all__ = ["EXPORTERS", "Choice", "Chosen", "Exporter", "File", "Row", "Take", "Written", "export"]
