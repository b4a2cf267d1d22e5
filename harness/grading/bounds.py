"""The limits of the processes that grade, with their units. The limits of the rules: `reasoning_answers.bounds`."""

from __future__ import annotations

WORKER_MEMORY_BYTES = 1 << 30
"""Address space of one worker."""

WARMING_SECONDS = 30.0
"""Deadline of an answer, in seconds, while its worker starts, or imports sympy or a verifier."""

MAX_VOTE_CHARS = 200
"""Longest vote (the text by which maj@k counts an answer) for an answer that ended its worker, in characters."""

MAX_FRAME_BYTES = 8 << 20
"""Longest message between the parent and a worker, in bytes."""

BATCH_ITEMS = 64
"""Number of answers sent to a worker in one message."""
