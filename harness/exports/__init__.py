"""Writes a graded run in the formats of other tools: training data, tables, and result files.

Other packages call `export`, and `formats` for the list of formats; `trackers.track` sends the scores to an experiment
tracker. Each format and each tracker is an extension, a file in `harness.extensions`.
"""

from harness.exports.export import Exporter, Written, export, formats
from harness.exports.selection import ExportedBenchmark, File, SampleChoice, SampleRow, Take

__all__ = ["ExportedBenchmark", "Exporter", "File", "SampleChoice", "SampleRow", "Take", "Written", "export", "formats"]
