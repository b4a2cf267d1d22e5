"""Asks for samples by batches: files of requests, which a provider or another program answers hours later.

The runner enters by `opening.by_batch`. `lines` is pure and knows the format of the files.
"""
