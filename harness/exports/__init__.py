"""A graded run in the formats of other tools: training data, tables, and their own files of results.

Enter by `export`, and by `formats` for what there is; `trackers.track` sends the scores to an experiment tracker.
Formats and trackers are extensions: a file each in `harness.extensions`.
"""

from harness.exports.choice import ExportedBenchmark, File, SampleChoice, SampleRow, Take
from harness.exports.exporting import Exporter, Written, export, formats

__all__ = ["ExportedBenchmark", "Exporter", "File", "SampleChoice", "SampleRow", "Take", "Written", "export", "formats"]
