"""What a verdict records of a benchmark's own verifier: how many parts of an answer are right, and a failure."""

from __future__ import annotations

from typing import NamedTuple

_FAILED = "verifier "
"""The rule of a verdict begins with this if the verifier failed, followed by what it did, such as "raised ValueError".
"""

LEFT_OPEN = f"{_FAILED}returned NoneType"
"""The rule of a verdict if the verifier returned None, which leaves the answer to a judge."""


class Parts(NamedTuple):
    """How much of an answer is right: `right` of `total` parts, such as cells of a table. All parts must be right for
    the answer to be right. total: at least 1, and the same for each answer to one question.
    """

    right: int
    total: int


def failure(rule: str) -> str | None:
    """Return what the verifier did in place of a verdict, such as "raised ValueError (mine.py:2)"; None if `rule`, the
    rule of a verdict, does not name a verifier's failure.
    """
    return rule.removeprefix(_FAILED) if rule.startswith(_FAILED) else None
