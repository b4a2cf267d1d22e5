"""An answer that a text states without a box: after a label, or as the last value of its last sentence.

Labels announce an answer, in the languages of the benchmarks, and marks enclose one:

    The answer is 5 · Final answer: 5 · #### 5 · A: 5 · 答案是5 · Respuesta: 5 · <answer>5</answer> · {"answer": 5}

A last sentence states its last value V if it has one of these forms:

    V · V units                                   the sentence is the value
    … is V · … = V · … we get V                   a verb or a sign that states a value precedes it
    So he runs 9 * 60 = 540 metres                a connective opens the sentence, and its last value ends it

After the value, only nouns may follow, and no word of the sentence may be a guard (`find.guards`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import itemgetter
from typing import NamedTuple

from reasoning_answers.find.guards import CONSEQUENCE, is_guarded_beside_label, is_guarded_in_prose
from reasoning_answers.find.values import (
    FORMULA,
    NUMBER,
    STOP,
    Extraction,
    last_match,
    sentence_around,
)
from reasoning_answers.grammar.tree import names
from reasoning_answers.grammar.units import FUNCTION_WORDS, unit_of
from reasoning_answers.patterns import regex

_OPENS_CONCLUSION = regex(
    r"(?i)(?:[\s*_#>]|\d+\.\s)*(?:so|therefore|thus|hence|then|finally|consequently|altogether|overall"
    r"|in\s+(?:total|all|conclusion|summary)"
    r"|as\s+a\s+result|∴|\\therefore|所以|因此|因而|故|综上|答|总共|一共|共)"
)
"""The beginning of a sentence that draws a conclusion: "So", "In total", 因此."""

_STATES = regex(
    r"(?i)(?:\b(?:is|are|was|were|be|equals?|equal|gets?|got|have|has|had|find|found|obtain(?:ed)?|gives?"
    r"|gave|yields?|makes?|becomes?|totals?"
    r"|costs?|needs?|needed|takes?|took|earns?|earned|pays?|paid|spends?|spent|made|sold|bought|saved?|won"
    r"|received|used?|weighs|lasts|contains?|sees?|left|answer|ans|result|est|ist|lautet|beträgt|es|è|é)"
    r"|['’]s|[=≈]|(?<![\"'])[:：]|是|为|有|等于|得|共|剩下?)"
    r"(?:(?:equal|to|exactly|only|just|simply|therefore|thus|a|the|total|of|number|in|also|now|then|given"
    r"|by|at|that|about|approximately|roughly|around|了)\b|\s|[$*_({\\\[:]){0,40}\Z"
)
"""A verb or sign directly before a value that states it: "is", "costs", =, 等于."""

_REASON = regex(
    r"(?i)(?<!\s)\s*+(?:[,，]\s*+(?:(?:not|as)\b|rather|instead)|(?:[,，]\s*+)?\b(?:because|since|which)\b|[—–])"
    r"|\s(?:that|which)\s(?:meet|satisf|fulfil)"
)
"""Where the words after a value continue with a reason or a condition, which are not read."""

_IN_REASON = regex(r"(?i)\S\s++(?:because|since)\b[^,，=≈]*+\Z")
"""A value after it is a reason, not what its sentence states."""

_BEFORE_NUMBER = regex(r"(?<![A-Za-z'’])([A-Za-z'’]++)[\s$*_({\\\[]*+\Z")
"""The word directly before a value."""

_NOT_BEFORE = names("than by to least most another figure page step equation theorem section case table and or from")
"""Words before a number that is not the conclusion of its sentence: "more than 5", "step 5"."""

_BEHIND = regex(
    r"(?>(?:[\s,]*+[A-Za-z²³°%€$/^0-9{}\\'’-]++){0,6})[\s,.*_)}\]$`\"”|]*+|[\u3400-\u9fff]{0,6}+[\s*$）)]*+"
)
"""Up to six words or signs after a value, up to the end of its sentence."""

_IS_ANSWER = regex(
    r"(?i)\s*+(?:is|are|(?:,\s*+)?[—–-]++\s*+that['’]s)\s++(?:the|our|my)\s+(?:final\s+|correct\s+)?(?:answer|result"
    r"|solution)\b"
)
""""… is the answer" after a value."""

_CLOSING = regex(
    r"(?i)(?>(?:[\s$*_`\"'’”)\]}.!。|>~✓∎■□✔✅🎉#-]++|\\[)\]]|<\|[^|<>\n]{1,40}\|>(?:user|assistant)?|</?\w+>"
    r"|(?:q\.?e\.?d|i\s+hope|thank|let\s+me\s+know)[^.\n]{0,200})*)"
)
"""The text that may follow the sentence of an answer: layout marks and closing words."""

_PASSED = names("such them in of per total all each the a an left for altogether")
"""Function words that may follow a value along with nouns: "5 of them", "12 in total"."""

_UNIT_BEHIND = regex(
    r" ?[A-Za-z²³°/^0-9]+(?: (?:per|[a-z]+)){0,3}?(?=[ \t.,]*\Z| (?:apart|long|wide|high|tall|deep|old|away"
    r"|in)\b)|\s?[\u4e00-\u9fff]{1,6}"
)
"""Words directly after a value that may be its unit."""


def statement_end(text: str, start: int, end: int) -> int | None:
    """Return where the value text[start:end] ends, with its unit, if its sentence states it; None if it does not."""
    begin, finish = sentence_around(text, start, end, lo=0, hi=len(text))
    head, tail = text[begin:start], _REASON.split(text[end:finish])[0]  # the words before the value and after it
    if text[finish : finish + 1] in ("?", "？") or _CLOSING.fullmatch(text, finish + 1) is None:
        return None
    before = _BEFORE_NUMBER.search(head)
    if is_guarded_in_prose(head, tail) or not (_IS_ANSWER.match(tail) or _is_noun(tail)):
        return None
    consequence = CONSEQUENCE.split(head)[-1]
    if _IN_REASON.search(consequence) is not None:
        return None
    leads = (consequence is not head or _OPENS_CONCLUSION.match(head) is not None) and (
        before is None or before[1].lower() not in _NOT_BEFORE
    )
    is_alone = not head.strip(" \t*_#>$(\\[`")
    if leads or is_alone or _STATES.search(head) or _IS_ANSWER.match(tail):
        return _end_of_unit(text, end, finish)
    return None


def _end_of_unit(text: str, start: int, finish: int) -> int:
    """Return where the unit at the beginning of text[start:finish] ends; `start` if there is no unit.

    Chinese words have no spaces between them, so every prefix is tried, the longest first.
    """
    match = _UNIT_BEHIND.match(text, start, finish)
    if match is None:
        return start
    is_chinese = match.group().strip()[0] >= "\u4e00"
    ends = range(match.end(), start, -1) if is_chinese else (match.end(),)
    return next((end for end in ends if unit_of(text[start:end]) is not None), start)


def _is_noun(tail: str) -> bool:
    """Whether the words after a value are units or nouns: no word in `FUNCTION_WORDS` except the words in `_PASSED`."""
    if _BEHIND.fullmatch(tail) is None:
        return False
    words = re.findall(r"[a-z']+", tail.lower())
    return not any(word in FUNCTION_WORDS and word not in _PASSED for word in words)


_REFUSED_BEFORE = regex(
    r"""(?xi) (?:
        (?: \b(?:not|never|cannot|neither|nor|except|excluding|hardly) | n['’]t ) \s+ (?:be\s+|equal\s+(?:to\s+)?)?
      | \b(?:impossible|unlikely)\s+to\s+(?:be|get|have|reach)\s+ | \bexceeds?\s+
      | \b(?:more|less|fewer|greater|smaller)\s+than\s+
      | \bat\s+(?:least|most)\s+ | \b(?:squared?|cubed?|root|half|double|multiple|factor|digit|power)\s+(?:of\s+)?
      | \b(?:twice|divisible\s+by)\s+ | \b(?:figure|page|section|chapter|step|table|equation|lemma|theorem)\s+
    ) [$(*]*\Z"""
)
_REFUSED_BEHIND = regex(r"(?i)[$)*\s]*(?:(?:is|are|was|does|can|will|would)(?:\s*n['’]t|\s*not|\s+never)\b|is\s+wrong)")
"""`_REFUSED_BEFORE`, `_REFUSED_BEHIND`: words that show that a value is not the answer, or only part of it."""


def is_refused(text: str, start: int, end: int) -> bool:
    """Whether the words around text[start:end] indicate that it is not the answer, or only part of it."""
    before = _REFUSED_BEFORE.search(text, max(0, start - 60), start)
    return before is not None or _REFUSED_BEHIND.match(text, end) is not None


_CONCLUDES = regex(
    r"(?i)(?:\A|[.!?。！？\n])[\s*_#>]{0,8}(?:(?:so|therefore|thus|hence|consequently|in\s+(?:total|conclusion"
    r"|summary)|finally|∴|所以|因此|因而|故|综上)"
    r"(?![a-z])[^\n.。]{0,200}?(?:\b(?:is|are|equals?|get|gives?|obtain|have|be)\b|[=＝是为有得共])"
    r"|(?:(?:then|now|this\s+way),?\s+)?(?:we|i|this|that|which|it)\s+(?:\w+ly\s+)?(?:get|obtain|find|gives?|yields?|conclude)"
    r"|(?:(?:the\s+)?final\s+)?results?(?:\s+is|(?=\s*:))"
    r"|[^\n.。!?！？]{0,80}?(?<!\w)(?:ist|lautet|beträgt|ergibt|est|vaut|donne|es|da|è|é|dà|este|är|adalah|jest|wynosi|odpowiedź\s+to|antwoord\s+is"
    r"|ответ(?:\s+[—-])?|равн[аоы]|равен|составляет|答えは|정답은)(?!\w))"
    r"[\s$*(\\\[:：]{0,6}(?=[-−\d\\$(√])"
)
"""A concluding sentence, up to the value that it states."""


def concluded(text: str, lo: int, hi: int) -> tuple[int, int] | None:
    """Return the span of the value that the last concluding sentence of text[lo:hi] states: "So the total is 13."."""
    sentence = last_match(_CONCLUDES, text, lo, hi)
    if sentence is None:
        return None
    begin = sentence.end()
    _, finish = sentence_around(text, begin, begin, lo, hi)
    values = [match.span() for pattern in (NUMBER, FORMULA) for match in pattern.finditer(text, begin, finish)]
    return max(values, key=itemgetter(1), default=None)  # a number and a formula never end together


# --- labels ---
_COLON_LABELS = (
    "ответ|정답|답|答え|解答|回答"
    "|réponse|respuesta|antwort|lösung|risposta|resposta|odpowiedź|cevap|đáp án|jibu|উত্তর|సమాధానం"
    "|คำตอบ|答|svar|antwoord|válasz|vastaus|answer|उत्तर|الجواب|الإجابة|jawaban|răspuns|отговор|відповідь"
    "|پاسخ|תשובה|απάντηση"
)
"""Words that announce an answer before a colon: the labels in MGSM's languages and other common ones."""

_LABEL = regex(
    rf"""(?x)
    \#{{4}}[ \t]*
    | (?i:final\s+answer)\s*(?:\*\*|__)?\s*(?i:is\b|are\b|[:：=\n])[:：\s]*
    | (?i:(?<![A-Za-z0-9])answers?(?:\s+in\s+(?:chinese|english|mandarin))?)\s*(?:\*\*|__)?\s*
      (?i:,\s*(?:therefore|thus|hence|then),\s*)?
      (?i:(?:is|are|equals)\b(?:\s+(?:therefore|thus|hence|then|simply|indeed|clearly|obviously|exactly)\b)?\s*[:：]?|[:：=]|[-–—](?=\s))
      \s*(?:\*\*|__)?\s*
    | (?i:(?<![A-Za-z0-9])answer)\s*(?=\$|\\\(|\\\[)
    | (?:^|\n)[ \t]*A\s*[:：]\s*
    | (?:答案|结果)\s*(?:\*\*|__)?\s*(?:应?[是为](?![ \t*_]*(?:[。.！!\n]|\Z))|[:：])+\s*
    | (?i:<answer>|<final_answer>)\s* | \[ANSWER\]\s* | <\|begin_of_box\|>\s*
    | (?i:(?<![^\W_])(?:{_COLON_LABELS}))\s*+(?:\*\*|__)?\s*+[:：]\s*(?:\*\*|__)?\s*
    | (?:答え|解答|回答|정답|답)\s*(?:は|은|는)\s* | (?:故选|应选|所以选)\s*(?:\*\*|__)?\s*[:：]?\s*
    """
)
"""Words and marks that announce an answer, up to where it begins."""

_JSON = regex(r"(?i)[\"'](?:final[_ ]?)?answer[\"']\s*:\s*")
"""The name of a JSON field "answer"."""

_JSON_TEXT = regex(r'"((?:[^"\\]|\\.){0,4000})"|\'([^\'\n]{0,4000})\'')
"""A text of JSON."""

_JSON_VALUE = regex(r"\[[^\[\]]{0,2000}\]|[^\s,}\]]{1,400}")
"""A list, a number or a word of JSON."""

_LEADS_TO_ANSWER = names(
    "so thus hence therefore then and finally consequently now but well also overall here clearly that as with is was "
    "be get gets give gives gave giving find finds found obtain obtains obtained conclude have has had make makes "
    "making mean means implies imply yield yields say believe think see know state report write provide box because "
    "since"
)
"""Connectives and verbs that introduce a statement of the answer: "which gives the answer"."""

_ARTICLES = names("the our my its this your a an")
_ADJECTIVES = names("final correct right exact numerical")
_NOT_THE_ANSWER = names("wrong incorrect false mistaken expected reference official worst his her their")
"""Words directly before "answer" that refer to an answer other than the reply's."""

_CHINESE_LEADS = regex(
    r"(?>(?:[\s*_#【]++|所以|因此|因而|故|于是|从而|综上|所述|最终|最后|正确|的|则|即|那么|得到|可得|得出|我们|可知|这个?|本|该|道|题目?|问题|计算|它|其|应该?|就|也)*)"
)
"""Chinese words before 答案 that introduce the answer; after any other word, 答案 states none, as in 假设答案是36."""

_OPENING = regex(r"\b(?:The|My|Our|Final|Answer|ANSWER)\b")
"""The first word of a label that begins a sentence."""

_MAX_OPENING_CHARS = 12
"""Number of characters before a label that are searched for its first word."""

_MAX_LEAD_CHARS = 60
"""Number of characters before a label in which words that introduce it are read."""


class Label(NamedTuple):
    """Where a label begins, and where the answer after it begins."""

    start: int
    end: int


def labels(text: str, lo: int, hi: int) -> Iterator[Label]:
    """Yield the labels in text[lo:hi] that announce an answer and do not deny it, in the order of the text."""
    for match in _LABEL.finditer(text, lo, hi):
        # A label at the very end announces nothing, as in a response that was cut off.
        if text[match.end() : hi][:1].strip() and not _is_no_statement(text, match, lo, hi):
            yield Label(match.end() - len(match.group().lstrip()), match.end())


def is_doubted(text: str, label: Label, end: int, lo: int, hi: int) -> bool:
    """Whether the sentence of a label, apart from its value (up to `end`), expresses doubt or supposition."""
    begin, finish = sentence_around(text, label.start, end, lo, hi)
    if (opening := _OPENING.search(text, max(begin, label.start - _MAX_OPENING_CHARS), label.end)) is not None:
        begin = opening.start()  # the formula before it ends without a stop
    return is_guarded_beside_label(text[begin : label.end], text[end:finish])


def in_json(text: str, lo: int) -> Extraction | None:
    """Return the value of the last JSON field "answer" in text[lo:]; None if there is no value."""
    field = last_match(_JSON, text, lo, len(text))
    if field is None:
        return None
    begin = field.end()
    if (literal := _JSON_TEXT.match(text, begin)) is not None:
        group = literal.lastindex or 1
        return Extraction(literal[group], *literal.span(group), "phrase")
    value = _JSON_VALUE.match(text, begin)
    # `{` opens a nested object, whose first characters are not a value.
    if value is None or value.group() in ("null", "{"):
        return None
    return Extraction(value.group().removeprefix("[").removesuffix("]"), *value.span(), "phrase")


def _is_no_statement(text: str, match: re.Match[str], lo: int, hi: int) -> bool:
    """Whether a label states no answer: "the wrong answer is 5", or the question "The answer is 5? No, 6.".

    match: a match of `_LABEL` in text[lo:hi].
    """
    label = match.group()
    if label[:2] in ("答案", "结果"):
        first = max(lo, match.start() - _MAX_LEAD_CHARS)
        # The clause begins after the last stop before the label.
        begin = max([first, *(text.rfind(stop, first, match.start()) + 1 for stop in "，,。；;：:！？\n.")])
        if _CHINESE_LEADS.fullmatch(text, begin, match.start()) is None:
            return True
    word_at = label.lower().find("answer")
    if word_at >= 0 and label[0] not in '<["' and _is_unstated(text, match.start() + word_at, lo):
        return True
    # "The answer is 5? No, 6." asks; a question mark at the end of the text may only be a habit.
    stop = STOP.search(text, match.end(), min(hi, match.end() + 400))
    return stop is not None and stop.group() in "?？" and bool(text[stop.end() : hi].strip())


def _is_unstated(text: str, start: int, lo: int) -> bool:
    """Whether the words before `start`, the position of "answer", mean that no answer is stated: "the wrong answer".

    It is stated if a clause or a line begins with it, its article or its adjective, or if a word in `_LEADS_TO_ANSWER`
    precedes these.
    """
    first = max(lo, start - _MAX_LEAD_CHARS)
    begin, _ = sentence_around(text, start, start, first, start)
    words = text[begin:start].replace("*", " ").lower().split()
    lead = words[:-1] if words[-1:] == ["final"] else words
    if lead and (lead[-1].strip("(") in _NOT_THE_ANSWER or lead[-2:-1] == ["least"]):
        return True  # "his answer", "the least likely answer"
    if lead and lead[-1] in _ADJECTIVES:
        lead = lead[:-1]
    articles = [index for index, word in enumerate(words) if word in _ARTICLES and index >= len(words) - 3]
    if articles:
        lead = words[: articles[-1]]  # at most two adjectives follow the article
    return bool(lead) and lead[-1][-1].isalnum() and lead[-1] not in _LEADS_TO_ANSWER
