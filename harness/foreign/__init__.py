"""Reads other tools' files as our questions and samples. Other packages call `outputs.read`.

`harness.commands.imported_runs` turns the result into a run.

file ──▶ `formats`, `layouts` (one reader a tool) ──▶ OutputRow ──▶ `outputs` (question, sample) pairs
                                                                  `row_ids`: rows of one question, sample numbers
"""
