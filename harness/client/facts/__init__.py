"""Asking a server about itself before the first sample: its models, context length, concurrency, tokens.

Other packages enter through `discovery` and `tokens`. All calls block; the requests go through `harness.core.http_get`.
"""
