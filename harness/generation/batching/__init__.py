"""Samples asked by the batch: requests gathered into files, handed to a provider or left for a program, results read.

`opening.by_batch` is the door, for the runner. `lines` is pure and knows the files' format.
"""
