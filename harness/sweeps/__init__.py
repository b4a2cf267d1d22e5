"""Sweeps: models × servers × prompts × sampling × benchmarks from one file, run, scored and put into one table.

`schema` defines what a file may hold, `file` reads it, `cells` makes the plan, `running` carries the plan out, `table`
shows the result. Callers use `whole`.
"""
