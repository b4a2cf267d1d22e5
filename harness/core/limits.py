"""The bounds that several packages share. A bound that one package needs stands in that package."""

from __future__ import annotations

MAX_RECORD_BYTES = 64 * 1024 * 1024
"""Longest line of a journal; the writer refuses a longer one, and a reader skips it."""

MAX_SAMPLES = 100_000
"""Largest number of samples per question; a larger number is a typing mistake or comes from a forged manifest."""

MAX_NAME_BYTES = 100
"""Longest file or folder name that is made from the name of a benchmark, a model or a run."""

MAX_MESSAGE_CHARS = 300
"""Longest piece of a server's or model's text that is quoted in a message or a log."""

MAX_ERROR_BODY_BYTES = 64 * 1024
"""Longest body that is read of a reply with an error status; servers echo whole prompts in it."""
