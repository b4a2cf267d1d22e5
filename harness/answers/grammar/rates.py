"""Units per a further unit: the 元 of 元/千克, the mile of mph."""

from __future__ import annotations

import re

from harness.answers.grammar.units import Unit, unit_of, with_slashes

_PER = re.compile(r"/|[\s*·.]*[a-zA-Z一-鿿]+\s*\^?\s*\{?\s*-\d")
"""A slash, or the first unit with a negative exponent: the h^-1 of "km*h^-1"."""

_SPEEDS = {"mph": "mile/h", "kph": "km/h", "kmh": "km/h"}


def unit_before_per(words: str) -> Unit | None:
    """Return the unit before the first "per" of a unit ("元/千克", "meters per second", "mph", "km*h^-1"); None if
    `words` name none.
    """
    spelled = with_slashes(_SPEEDS.get(words.lower(), words))
    per = _PER.search(spelled)
    return unit_of(spelled[: per.start()]) if per is not None and unit_of(words) is not None else None
