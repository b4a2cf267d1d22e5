"""Asks for samples by a provider's batches: files of requests, which it answers hours later.

The runner enters by `loop.BatchLoop`. `handing` knows the format of the files, and what was handed in.
"""
