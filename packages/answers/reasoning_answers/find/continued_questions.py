"""Where a reply continues with questions of its own, as a base model does after the answer to a few-shot prompt."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from itertools import islice

from reasoning_answers.patterns import regex
from reasoning_answers.records import QuestionLike

_MAX_HEADINGS = 16
"""Number of headings in a reply that are examined."""

_PARAGRAPH_HEADING = regex(r"(?:\A|\n[ \t]*\n)[ \t#*]*([^\W\d][^\n:：*.]{0,30}?)[ \t]*\d*[*_]*[:：]")
_USUAL = "[Qq]uestion|QUESTION|Q|[Pp]roblem|PROBLEM|Exercise|Human|User|问题?|题目"


def further_question(text: str, lo: int, hi: int, question: QuestionLike) -> tuple[int, bool] | None:
    """Return where text[lo:hi] begins to ask a question that is not in the prompt, and whether its heading is that of
    the examples in the prompt rather than a common one; None if it asks no question.
    """
    prompt = "\n\n".join(message.content for message in question.messages) or question.prompt
    for heading in islice(_headings(prompt).finditer("\n" + text[lo:hi]), _MAX_HEADINGS):
        if heading["asked"] not in prompt or not heading["asked"]:
            return max(lo, lo + heading.start() - 1), heading["own"] is not None
    return None


@lru_cache(maxsize=4)
def _headings(prompt: str) -> re.Pattern[str]:
    """The pattern of a question's heading and the question's line. own: the heading of the prompt's examples."""
    names = Counter(_PARAGRAPH_HEADING.findall(prompt)).most_common(1)
    own = "|".join(re.escape(name) for name, n in names if n > 1) or "(?!)"
    end = r"(?![A-Za-z])[ \t]*\d*[ \t]*[*_]*(?:[:：][ \t*_]*|\.?[ \t]*$)\s*+(?P<asked>[^\n]*)"
    return re.compile(rf"\n[ \t#*>_]*+(?:(?P<own>{own})|{_USUAL}){end}", re.MULTILINE)
