"""Reads other tools' files, and only reads: as questions and samples of ours. Other packages enter by `outputs.read`.

`harness.commands.imported_runs` makes a run of what is read.

file ──▶ `formats`, `layouts` (one reader a tool) ──▶ OutputRow ──▶ `outputs` (question, sample) pairs
                                                                  `row_ids`: rows of one question, sample numbers
"""
