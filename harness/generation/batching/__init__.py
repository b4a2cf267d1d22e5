"""Asks for samples by a provider's batches: files of requests, which it answers hours later.

The runner enters by `loop.BatchLoop`. `lines` is pure and knows the format of the files.
"""
