"""Reading files of other tools as questions and samples of ours. Other packages enter by `outputs.read`.

file ──▶ `formats`, `layouts` (one reader a tool) ──▶ OutputRow ──▶ `outputs` (question, sample) pairs
                                                                  `row_ids`: rows of one question, sample numbers
"""
