"""Bounds on what is read from cards and data files, each with its unit."""

from __future__ import annotations

MAX_DATA_BYTES = 4 * 1024**3
"""Longest data file after decompression, in bytes."""

MAX_UNPACKED_RATIO = 20
"""Largest ratio of unpacked to packed size of a compressed file, beyond `FREE_UNPACKED_BYTES`; text packs to an
eighth."""

FREE_UNPACKED_BYTES = 64 * 1024**2
"""Bytes that any compressed file may unpack to."""

MAX_FIELD_CHARS = 2_000_000
"""Longest text of one field of a row, in characters; a longer one is no question."""

MAX_RESPONSE_CHARS = 64_000_000
"""Longest text of one field of a file of model outputs, in characters."""

MAX_DEPTH = 200
"""Deepest nesting of a row, in levels."""

MAX_ROWS = 5_000_000
"""Most rows of one data file."""

MAX_DOWNLOAD_BYTES = 1024**3
"""Longest file that is downloaded from a plain address, in bytes."""
