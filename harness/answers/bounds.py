"""Every limit on reading an answer, with its unit. An answer beyond a limit is rejected, never silently cut."""

from __future__ import annotations

# --- boxes ---
MAX_BOX_CHARS = 2_000_000
"""Longest content of a box, in characters; a box with a longer one counts as unclosed."""

MAX_BRACES = 200_000
"""Largest number of braces and backslashes that the search for closing braces examines in one response."""

MAX_OPEN_BOXES = 64
"""Number of unclosed boxes, counted from the end, after which the search for a box stops."""

MAX_BOX_SEARCHES = 4_096
"""Largest number of occurrences of the letters "box", counted from the end, that the search for a box examines."""

# --- the grammar ---
MAX_ANSWER_CHARS = 4_000
"""Longest answer that is parsed, in characters; a longer one is only compared as text."""

MAX_TOKENS = 2_000
"""Largest number of tokens of an answer; an answer with more is unreadable."""

MAX_DEPTH = 100
"""Deepest nesting of brackets, fractions and functions; an answer nested deeper is unreadable."""

MAX_LITERAL_DIGITS = 1_000
"""Largest number of digits in one number as written; an answer with a longer number is unreadable."""

MAX_DECIMAL_EXPONENT = 400
"""Largest exponent in e-notation, of either sign; 1e401 is unreadable."""

LAST_LETTER = "J"
"""Last option letter of a question with unknown options."""
