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

# --- finding the answer ---
TAIL_CHARS = 12_000
"""Number of characters at the end of a response that are searched for phrases such as "the answer is"."""

MAX_EXTRACTED_CHARS = 20_000
"""Longest answer that is compared, in characters; a longer one is cut and marked as cut."""

MAX_WHOLE_REPLY_CHARS = 400_000
"""Longest reply that a benchmark's own verifier receives whole, in characters; a longer one has no answer."""

MAX_VALUES = 64
"""Largest number of values in a reply without a box or label that are compared, to see whether one of them is right."""

MAX_CANDIDATES = 16
"""Largest number of boxes besides the answer that are also compared, to see whether one of them contains the right
answer.
"""

# --- computing with it ---
MAX_ALTERNATIVES = 64
"""Largest number of values to which the ± signs of one answer may expand."""

MAX_BITS = 20_000
"""Largest exact integer, in bits, estimated before it is computed. 2023! has 19,300."""

MAX_POWER_BITS = 100_000
"""Largest power of a number, in bits. 2024^4046 has 44,500. Sums and products must be shorter."""

MAX_FACTORIAL = 5_000
"""Largest number whose factorial is computed exactly."""

MAX_RANGE = 10_000
"""Largest number of terms of a sum or product with numeric limits that is written out."""

MAX_EVALUATIONS = 200_000
"""Largest number of nodes that one numeric comparison evaluates, over all points and precisions."""

IDENTITY_POINTS = 6
"""Number of points at which two expressions in variables must agree."""

MAX_DIGITS = 8_000
"""Largest number of significant digits with which values are compared; a pair that needs more is undecided."""

MIN_ROUNDED = 100
"""A decimal may be a rounded value if its digits without the point, as an integer, are at least this: three digits."""
