"""Bounds on what is read from cards and data files, each with its unit."""

from __future__ import annotations

MAX_DATA_BYTES = 4 * 1024**3
"""Longest data file, after decompression."""

MAX_UNPACKED_RATIO = 20
"""Largest ratio of unpacked to packed size of a compressed file above `FREE_UNPACKED_BYTES`. Text has a ratio of 8."""

FREE_UNPACKED_BYTES = 64 * 1024**2
"""Size to which any compressed file may unpack, whatever its ratio."""

MAX_FIELD_CHARS = 32_000_000
"""Longest text in a row of questions: the longest texts of LongBench v2 have some 16,000,000 characters."""

MAX_RESPONSE_CHARS = 64_000_000
"""Longest text in a row of model outputs."""

MAX_DEPTH = 200
"""Deepest nesting of lists and mappings in a row."""

MAX_ROWS = 5_000_000
"""Largest number of rows of one data file."""

MAX_LISTING_BYTES = 64 * 1024 * 1024
"""Longest description of a data set of the hub that is read."""

MAX_DOWNLOAD_BYTES = 1024**3
"""Longest file that is downloaded from a card's URL."""
