"""Every bound that is shared between packages, with its unit. A package's own bounds stand in that package."""

from __future__ import annotations

MAX_RECORD_BYTES = 64 * 1024 * 1024
"""Longest line of a journal; a longer one is refused before the write and skipped by the reader."""

MAX_SAMPLES = 100_000
"""Samples of a question; a larger number is a typing mistake, or a forged manifest."""

MAX_NAME_BYTES = 100
"""Longest file or folder name that we make from a benchmark, model or run name."""

MAX_MESSAGE_CHARS = 300
"""Longest piece of a server's or model's text that is quoted in a message or a log."""

MAX_ERROR_BODY_BYTES = 64 * 1024
"""Longest body of an error that is read; servers echo whole prompts."""
