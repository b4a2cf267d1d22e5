"""Generates samples through a provider's batches: files of requests that are answered hours later.

The runner uses `loop.BatchLoop`. `handing` handles the file format and the submitted batches.
"""
