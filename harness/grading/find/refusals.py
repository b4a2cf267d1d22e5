r"""Words by which a text denies a value, takes it back, or makes it a part of something: "cannot be 5", "figure 5"."""

from __future__ import annotations

import re

_DENIED = re.compile(
    # Possessive: the white space of a long blank end must not be shared out between two groups in every way there is.
    r"(?i)[\s.,;:!$*)\]}—-]*+(?:(?:however|but|wait|actually|no|hmm|oh|sorry)\b[\s.,!]*+)*+(?:(?:that|this|it|which)\b)?\s*+"
    r"(?:['’]s|is|was)\s+(?:wrong|incorrect|false|a\s+mistake|not\s+(?:right|correct))\b"
)
"""Words behind a box that take it back: "That is wrong"."""

_REFUSED_BEFORE = re.compile(
    r"""(?xi) (?:
        (?: \b(?:not|never|cannot|neither|nor|except|excluding|hardly) | n['’]t ) \s+ (?:be\s+|equal\s+(?:to\s+)?)?
      | \b(?:impossible|unlikely)\s+to\s+(?:be|get|have|reach)\s+ | \bdiffers?(?:ent)?\s+from\s+ | \bexceeds?\s+
      | \bbetween\s+[$\\({]*-?[\d.,]+[$\\)}]*\s+and\s+
      | \b(?:squared?|cubed?|root|half|double|multiple|factor|digit|power)\s+(?:of\s+)? | \b(?:twice|divisible\s+by)\s+
      | \b(?:figure|page|section|chapter|step|table|equation|lemma|theorem|footnote)\s+
      | \b(?:wrong|incorrect)(?:\s+(?:answer|value|result|number))?(?:\s+(?:is|was|would\s+be))?\s*[:=]?\s*
    ) [$(*]*\Z"""
)
_REFUSED_BEHIND = re.compile(
    r"(?i)[$)*\s]*(?:(?:is|are|was|does|do|did|can|could|will|would|should)(?:\s*n['’]t|\s*not|\s+never)\b"
    r"|(?:is|was|are|were)\s+(?:wrong|incorrect|false|impossible|invalid|excluded|ruled\s+out|a\s+mistake|too\s)\b|fails\b)"
)
"""These two: words beside a number which say that it is not the answer, or only a part of it."""

_NO_ANSWER_BEFORE = re.compile(r"(?i)\b(?:wrong|incorrect|false|mistaken|worst|least\s+\w+)\s+(?:final\s+)?\Z")
"""Words before "answer" because of which the phrase states none: "the wrong answer is"."""

_REFUSED_WHOLE = re.compile(r"(?i)(?:wrong|incorrect)\b")


def is_taken_back(text: str, end: int, hi: int) -> bool:
    """Whether the words from `end` on, up to `hi`, take back what stands before them: "That is wrong"."""
    return _DENIED.match(text, end, hi) is not None


def is_refused(tail: str, start: int, end: int) -> bool:
    """Whether the words beside tail[start:end] say that it is not the answer, or only a part of it."""
    behind = _REFUSED_BEHIND.match(tail, end) or _DENIED.match(tail, end)
    return behind is not None or is_refused_before(tail, start)


def is_refused_before(tail: str, start: int) -> bool:
    """Whether the words before `start` say that what follows is not the answer: "cannot be 5"."""
    return _REFUSED_BEFORE.search(tail, max(0, start - 60), start) is not None


def announces_wrong_answer(tail: str, start: int) -> bool:
    """Whether the words before `start`, where "answer" stands, make it one that is not meant: "the wrong answer"."""
    return _NO_ANSWER_BEFORE.search(tail, max(0, start - 40), start) is not None


def is_refusal(line: str) -> bool:
    """Whether a line begins by saying that something is wrong."""
    return _REFUSED_WHOLE.match(line) is not None
