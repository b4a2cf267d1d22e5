"""What a server says of itself before the first sample: models, context, concurrency.

Enter by `discovery`. Blocking, by the one client for small requests (`harness.core.http_get`).
"""
