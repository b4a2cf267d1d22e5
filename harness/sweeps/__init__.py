"""Sweeps: models × servers × prompts × sampling × benchmarks from one file are run, scored and shown in one table.

`schema` defines the file format, `file` reads it, `cells` makes the plan, `execution` executes the plan, `table` shows
the result. Callers use `sweep_runner`.
"""
