"""Asks for samples by batches: files of requests, which a provider or another program answers hours later.

The runner enters by `loop.BatchLoop`. `lines` is pure and knows the format of the files.
"""
