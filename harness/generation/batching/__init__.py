"""Generates samples through a provider's batches: files of requests that are answered hours later.

The runner uses `loop.BatchLoop`. `submission` handles the file format and the submitted batches.
"""
