r"""What stands beside the statement of an answer without a box: "The answer is 12." states 12 only if it stands alone.

    in its sentence, before it      allowed: words that lead to it ("so", "we conclude that"), a reason ("since …,"), a
                                    clause and "so"; other words may limit it ("in the first case, the answer is 12")
    the sentence directly before    allowed: all but a bare supposition, a sentence that supposes something, computes
                                    nothing and draws no conclusion ("Assume the coin is fair.")

Solutions suppose things all the time ("Suppose he has x apples. Then 2x + 3 = 17, so x = 7."), so that a supposition
further back, or one with a result, limits nothing. A box needs none of this: prompts ask for it.
"""

from __future__ import annotations

import re
from itertools import pairwise

from harness.grading.find.chinese import hedges

MAX_CHARS = 1_200
"""The text is looked at this far before a statement, in characters."""

_STOP = re.compile(
    r"[.!?](?=[\s\"'”*)$\\\]}]|\Z)|\n|[。！？]|(?:\\\]|\\end\{[a-z*]{1,20}\}|\$\$|\[/asy\]|[.)$])(?=\s+[A-Z])"
)
"""Ends of sentences: marks, line breaks, and the end of a formula before a capital."""

_MARKS = " \t\n*_#>`-–—•~$|\"“”'’()[]\\"

_LEAD = (
    r"so|therefore|thus|hence|then|now|and|finally|indeed|clearly|consequently|okay|ok|well|overall|altogether|yes|also|here|that|no|wait|actually|hmm|(?:(?:is\s+)?the\s+)?answer(?:\s+is)?|is"
    r"|in\s+(?:total|all|conclusion|summary|short|the\s+end)|as\s+a\s+result|to\s+(?:conclude|summarize|sum\s+up)"
    r"|(?:we|i|you|one)\s+(?:can\s+|now\s+|finally\s+|then\s+)*(?:get|have|find|found|see|know|obtain|conclude|think|believe|say|provide|report|box|state|write|give)(?:\s+that)?"
    r"|(?:this|that|it|which)\s+(?:means|shows|implies|gives|yields|makes|follows|is)(?:\s+us)?(?:\s+that)?"
    r"|(?:which|this)\s+(?:is\s+)?why|giving(?:\s+us)?|because|since|final|conclusion|result|solution|summary|∴|⇒|→|\\(?:therefore|implies|Rightarrow)(?![a-z])"
)
OTHER_LEADS = (
    r"따라서|그러므로|그래서|즉|결국|したがって|従って|よって|ゆえに|故に|だから|以上より|つまり"
    r"|итак|следовательно|значит|таким\s+образом|поэтому|в\s+итоге"
    r"|por\s+(?:lo\s+)?tanto|así|entonces|en\s+conclusión|finalmente|donc|ainsi|par\s+conséquent|finalement"
    r"|somit|daher|folglich|deshalb|damit|quindi|dunque|pertanto|portanto|logo|assim|então"
)
"""Words that lead to an answer in Korean, Japanese, Russian, Spanish, French, German, Italian and Portuguese."""

_ARTICLE = r"(?:(?:the|our|my|its|this|your|an?)\s+)?(?:(?:final|correct|right|exact|numerical)\s+)*"
# Possessive quantifiers, so that each lead that can be read in two ways does not double the work.
_PREFIX = re.compile(rf"(?i)\s*+(?:(?:{_LEAD}|{OTHER_LEADS})(?![a-zA-Z])[\s,:—–-]*+)*+{_ARTICLE}")
_CONSEQUENCE = re.compile(
    r"(?i)[\s,;—–:-](?:so|therefore|thus|hence|because|which\s+(?:means|gives|makes|implies)(?:\s+that)?|giving|and)[\s,]"
)
_ROUGH = r"\s+(?:an?\s+)?(?:rough\s+|crude\s+|first\s+)?(?:estimat\w+|approximation|guess\w*)\b"
_REASON = re.compile(
    rf"(?i)\s*(?:since|because|as(?!{_ROUGH})|after|by(?!\s+default|{_ROUGH})|from|using|finally|(?:when|if)\s+(?:rounded|simplified|written|expressed)|(?:add|subtract|multiply|divid|comput|calculat|simplify|substitut|expand|factor|rearrang|combin|count|solv|summ|tak|squar|apply|plugg|evaluat|integrat|differentiat|putt|work)ing)\b[^,:]*,"
)
_LABEL = re.compile(
    r"(?i)[\s*_#>-]*(?:final\s+answer|answer|conclusion|solution|result|summary|so|therefore|thus|hence|step\s+\d+|in\s+short)[\s*_]*:[\s*_]*"
)
_MARK = re.compile(
    r"(?i)\#{4}.*|<answer>.*|(?:the\s+)?(?:final\s+|correct\s+)?(?:answer|solution)s?[\s*_]*(?:[:：=].*|\Z)|(?:final\s+answer)\b.*"
    r"|A\s*[:：]|(?:最终)?答案\s*[:：]|答\s*[:：]",
    re.DOTALL,
)
"""Marks of an answer that prompts ask for, at the start of a line or a sentence."""

_SUPPOSES = re.compile(
    r"(?i)(?:assum\w*|suppos\w*|imagine|if|unless|when|whenever|as\s+long\s+as|take\s+the\s+case|provided|providing|ignor\w*|neglect\w*|given|under|were|had"
    r"|consider\s+(?:only\s+)?the)\b|(?:假设|假如|如果|若|设(?!\s*[$\\(]*[a-zA-Z]))"
)
"""How a supposition begins. A sentence with a comma goes on to a conclusion: "If it is hot, the gas expands"."""

_RESULT = re.compile(r"[0-9=$\\,，:：]")
"""Signs of a calculation, or of a conclusion behind a comma."""

_CHINESE = re.compile(r"[\u3400-\u9fff]")
_JAPANESE = re.compile(r"[\u3040-\u30ff]")
_CHINESE_SUPPOSES = re.compile(r"如果|若|假设|假如|当|除非|只要|要是|倘若|有人|说|学生|老师|同学|错")
"""Words before 答案是 in its own sentence that suppose or quote."""


def is_left_standing(text: str, start: int, phrase: str) -> bool:
    """Whether the words before `start`, where the phrase that announces an answer begins, leave the answer standing."""
    begin = _sentence_start(text, start)
    head = text[begin:start].lstrip(_MARKS)
    if _MARK.fullmatch(f"{head}{phrase}".strip(_MARKS)) is None and not _has_plain_start(head):
        return False
    return not is_supposed(text, start)


def is_supposed(text: str, start: int) -> bool:
    """Whether the sentence directly before the one that holds position `start` is a bare supposition."""
    begin = _sentence_start(text, start)
    first = max(0, begin - MAX_CHARS)
    ends = [first, *(stop.end() for stop in _STOP.finditer(text, first, begin)), begin]
    sentences = [part for left, right in pairwise(ends) if (part := text[left:right].strip(_MARKS))]
    if not sentences:
        return False
    return _SUPPOSES.match(sentences[-1]) is not None and _RESULT.search(sentences[-1]) is None


def _sentence_start(text: str, start: int) -> int:
    """Return where the sentence that holds position `start` begins."""
    first = max(0, start - MAX_CHARS)
    begin = max((stop.end() for stop in _STOP.finditer(text, first, start)), default=first)
    # A sentence longer than `MAX_CHARS` begins at a word, not in the middle of one.
    is_cut = begin == first > 0
    return max(first, text.find(" ", first, start)) if is_cut else begin


def _has_plain_start(head: str) -> bool:
    """Whether `head`, the words before a statement in its own sentence, only leads to it."""
    head = head.replace("，", ",").replace("、", ",")
    while (label := _LABEL.match(head)) is not None and label.end():
        head = head[label.end() :]
    if _CHINESE.search(head) and not _JAPANESE.search(head):
        return _CHINESE_SUPPOSES.search(head) is None and not hedges(head)
    if _PREFIX.fullmatch(head):
        return True
    consequences = list(_CONSEQUENCE.finditer(head))
    if consequences and _PREFIX.fullmatch(head[consequences[-1].start() + 1 :]):
        return True
    reason = _REASON.match(head)
    return reason is not None and _PREFIX.fullmatch(head[reason.end() :]) is not None
