r"""Words by which a text denies a value, takes it back, or makes it a part of something: "cannot be 5", "figure 5"."""

from __future__ import annotations

import re

from harness.answers.grammar.tree import names

_DENIED = re.compile(
    # Possessive quantifiers: otherwise the pattern would try every way to split a long run of white space.
    r"(?i)[\s.,;:!$*)\]}—。，；！-]*+(?:(?:however|but|wait|actually|no|hmm|oh|sorry)\b[\s.,!]*+)*+(?:(?:that|this|it|which)\b)?\s*+"
    r"(?:['’]s|is|was)\s+(?:wrong|incorrect|false|a\s+mistake|not\s+(?:right|correct))\b"
)
"""Words behind a box that take it back: "That is wrong"."""

_REPAIRING = (
    r"(?:wait|hold\s+on|hang\s+on|actually|correction|oops|whoops|sorry|hmm+|my\s+mistake|my\s+bad|apologies|i\s+apologi[sz]e"
    r"|scratch\s+that|strike\s+that|on\s+second\s+thoughts?|nope|no(?=[,.!:;—–])|let\s+me\s+(?:correct|fix|redo|re-?check|reconsider)"
    r"|i\s+(?:(?:have\s+)?made\s+an?\s+(?:\w+\s+)?(?:mistake|error|slip)|swapped|misread|mis-?counted|mis-?calculated|forgot|mistyped|meant|was\s+wrong))\b"
)
_REPAIRED = re.compile(
    rf"(?i)(?:[.!?;—–…)*\n。！？；]|\s-|\.\.\.)[\s*_$]*+(?:(?:oh|but|and|well)\b[\s,.!—–-]*+)*+{_REPAIRING}"
)
"""Words at the beginning of a sentence behind an answer by which a writer corrects what stands before."""

_BEGINS_REPAIR = re.compile(rf"(?i)(?:oh[\s,]+)?(?:{_REPAIRING}|no\Z)")

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
"""`_REFUSED_BEFORE`, `_REFUSED_BEHIND`: words beside a number which say that the number is not the answer, or is only a
part of it.
"""

_LEADS_TO_ANSWER = names(
    "so thus hence therefore then and finally consequently now but well also overall here clearly that as with is "
    "was be get gets give gives gave giving find finds found obtain obtains obtained conclude have has had make makes "
    "making mean means implies imply yield yields say believe think see know state report write provide box "
    "because since"
)
"""Connectives and verbs that lead to a statement of the answer: "which gives the answer"."""

_ARTICLES = names("the our my its this your a an")
_ADJECTIVES = names("final correct right exact numerical")
_NOT_THE_ANSWER = names("wrong incorrect false mistaken expected reference official worst")
"""Adjectives before "answer" which say that the reply does not give this answer as its own."""

_EMPHASIS = re.compile(r"[*_]+(?![\d(])")
"""Marks of bold and italic type, which are no part of a word: `**Final answer:**`."""

_MAX_LEAD_CHARS = 60
"""Words before "answer" are looked at this far, in characters."""

_GIVES_UP = re.compile(
    r"(?i)\b(?:i|we)\s+(?:am\s+|are\s+|was\s+|were\s+)?(?:can\s*not|can['’]t|could\s*n['’]t|could\s+not|unable\s+to|not\s+able\s+to"
    r"|do\s*n['’]t|do\s+not|did\s+not|am\s+not\s+sure|['’]m\s+not\s+sure)\s*(?:\w+\s+)?"
    r"(?:solve|answer|determine|know|find|compute|decide|provide|sure|say|tell|finish|help|assist|comply)\b"
)
"""A sentence by which a reply says that it has no answer."""

_ECHO = re.compile(
    r"(?i)\b(?:you\s+(?:ask|asked|gave|said|wrote|wanted)|the\s+(?:question|problem|prompt|exercise|task)\b|appears|guess"
    r"|(?:user|key|book|sheet)\s+(?:says|claims|expects)\b|(?:expected|reference|official)\s+answer\b"
    r"|(?:mark|grade|accept|count)\s+\S+\s+as\b"
    r"|(?:need|want|expect|require)s?\s+the\s+(?:final\s+)?answer\s+to\s+be\b)"
)
"""Words of a sentence that repeats the question, or guesses."""

_SENTENCE_STOPS = ".!?\n。！？"
MAX_SENTENCE_CHARS = 240
"""A sentence is looked at this far on either side of a number, in characters."""

_REFUSED_WHOLE = re.compile(r"(?i)(?:wrong|incorrect)\b")


def is_taken_back(text: str, end: int, hi: int) -> bool:
    """Whether the words from `end` on, up to `hi`, take back what stands before them: "That is wrong"."""
    return _DENIED.match(text, end, hi) is not None


def is_repaired(text: str, end: int, hi: int) -> bool:
    """Whether a sentence of text[end:hi] begins with words that correct what stands before: "Wait, I misread it"."""
    return _REPAIRED.search(text, end, hi) is not None


def begins_repair(sentence: str) -> bool:
    """Whether a sentence begins with words that correct what stands before it."""
    return _BEGINS_REPAIR.match(sentence) is not None


def is_refused(tail: str, start: int, end: int) -> bool:
    """Whether the words beside tail[start:end] say that it is not the answer, or only a part of it."""
    behind = _REFUSED_BEHIND.match(tail, end) or _DENIED.match(tail, end)
    return behind is not None or is_refused_before(tail, start)


def is_refused_before(tail: str, start: int) -> bool:
    """Whether the words before `start` say that what follows is not the answer: "cannot be 5"."""
    # Sixty characters are longer than any of these phrases, and bound the search at each number.
    return _REFUSED_BEFORE.search(tail, max(0, start - 60), start) is not None


def is_unstated(tail: str, start: int) -> bool:
    """Whether the words before `start`, the position of the word "answer", show that no answer of the reply follows.

    As in "the wrong answer is 5" or "whether the answer is 5". An answer does follow if a line or clause begins with
    "answer", "the answer" or "the final answer", or if a word of `_LEADS_TO_ANSWER` stands before these.
    """
    first = max(0, start - _MAX_LEAD_CHARS)
    words = _EMPHASIS.sub(" ", tail[max(first, tail.rfind("\n", first, start) + 1) : start]).lower().split()
    # "final" is dropped: "wrong final answer" is as wrong as "wrong answer".
    lead = words[:-1] if words[-1:] == ["final"] else words
    if lead and (lead[-1] in _NOT_THE_ANSWER or lead[-2:-1] == ["least"]):
        return True
    before = lead[:-1] if lead and lead[-1] in _ADJECTIVES else lead
    for index in range(len(words) - 1, max(-1, len(words) - 4), -1):  # at most two adjectives follow the article
        if words[index] in _ARTICLES:
            before = words[:index]
            break
    return bool(before) and before[-1][-1].isalnum() and before[-1] not in _LEADS_TO_ANSWER


_CHINESE_LEADS = re.compile(
    r"(?:[\s*_#>•-]|所以|因此|因而|故|于是|从而|综上|所述|最终|最后|正确|的|则|即|那么|得到|可得|得出|我们|可知|这个?|本|该|道|题目?|问题|计算|它|其|应该?|就|也)*+"
)
"""Chinese words before 答案 that lead to the answer. Behind other words 答案 states no answer, as in 假设答案是36."""


def is_stated_in_chinese(tail: str, start: int) -> bool:
    """Whether the clause before `start`, the position of 答案, only leads to the answer."""
    first = max(0, start - _MAX_LEAD_CHARS)
    begin = max([first, *(tail.rfind(stop, first, start) + 1 for stop in "，,。；;：:！？\n.")])
    return _CHINESE_LEADS.fullmatch(tail, begin, start) is not None


def is_refusal(line: str) -> bool:
    """Whether a line begins by saying that something is wrong."""
    return _REFUSED_WHOLE.match(line) is not None


def gives_up(tail: str) -> bool:
    """Whether a reply says that it has no answer, as in "I cannot solve this"; then none of its numbers counts."""
    return _GIVES_UP.search(tail) is not None


def is_echo(tail: str, start: int, end: int) -> bool:
    """Whether tail[start:end] stands in a question, or in a sentence that repeats the question of the user."""
    first, last = max(0, start - MAX_SENTENCE_CHARS), min(len(tail), end + MAX_SENTENCE_CHARS)
    begin = max([first, *(tail.rfind(stop, first, start) + 1 for stop in _SENTENCE_STOPS)])
    stops = [position for stop in _SENTENCE_STOPS if (position := tail.find(stop, end, last)) >= 0]
    finish = min(stops, default=last)
    asks = finish < len(tail) and tail[finish] in "?？"
    return asks or _ECHO.search(tail, begin, finish) is not None
