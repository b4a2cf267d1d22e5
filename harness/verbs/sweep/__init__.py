"""Sweeps: models × servers × prompts × sampling × benchmarks out of one file, run, scored and set in one table.

`schema` says what a file may hold, `file` reads it, `cells` is the plan, `running` carries it out, `table` is the
result. Only the command line enters; starting the scorer's process is handed in.
"""
