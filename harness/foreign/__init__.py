"""Reads other tools' files as our questions and samples. Other packages call `outputs.read`.

`harness.commands.imported_runs` turns the result into a run.

file ──▶ `layouts` ──▶ Row ──▶ `rows` (by `formats`) ──▶ OutputRow ──▶ `outputs`: (question, sample) pairs
                                                                        `row_ids`: rows of one question
"""
