"""Every bound on reading an answer, with its unit. What exceeds one is refused, never truncated silently."""

from __future__ import annotations

# --- boxes ---
MAX_BOX_CHARS = 2_000_000
"""Longest content of a box that is looked for, in characters; a longer one counts as unclosed."""

MAX_BRACES = 200_000
"""Braces and backslashes looked at in one response while closing braces are sought."""

MAX_OPEN_BOXES = 64
"""Unclosed boxes walked past, from the end, before giving up."""

MAX_BOX_SEARCHES = 4_096
"""Occurrences of the letters "box" looked at, from the end."""

# --- the grammar ---
MAX_ANSWER_CHARS = 4_000
"""Longest answer that is parsed, in characters; a longer one is only compared as text."""

MAX_TOKENS = 2_000
MAX_DEPTH = 100
"""Nesting of brackets, fractions and functions."""

MAX_LITERAL_DIGITS = 1_000
"""Digits of one number as written."""

MAX_DECIMAL_EXPONENT = 400
"""Largest power of ten of a number in e-notation that is expanded exactly."""
