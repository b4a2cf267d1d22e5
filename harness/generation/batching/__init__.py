"""Asks for samples by batches: requests are gathered into files, sent to a provider or left for a program, and results
read.

The runner enters by `opening.by_batch`. `lines` is pure and knows the format of the files.
"""
