"""Labels that announce an answer, in the languages of the benchmarks, and marks that wrap one.

The answer is 5 · Final answer: 5 · #### 5 · A: 5 · 答案是5 · Respuesta: 5 · <answer>5</answer> · {"answer": 5}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from harness.answers.grammar.tree import names
from harness.answers.grammar.vocabulary import is_command
from harness.answers.patterns import regex
from harness.grading.find.guards import is_guarded_beside_label
from harness.grading.find.values import STOP, Extraction, last_match, sentence_around

_COLON_LABELS = (
    "ответ|정답|답|答え|解答|回答"
    "|réponse|respuesta|antwort|lösung|risposta|resposta|odpowiedź|cevap|đáp án|jibu|উত্তর|సమాధానం"
    "|คำตอบ|答|svar|antwoord|válasz|vastaus|answer|उत्तर|الجواب|الإجابة|jawaban|răspuns|отговор|відповідь"
    "|תשובה|απάντηση"
)
"""Words that announce an answer before a colon: those of MGSM's languages, and other usual ones."""

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

_BACKSLASHED_NAME = regex(r"(?<!\\)(?:\\\\)*\\([A-Za-z]+)")
"""Letters behind a single backslash, an escape of JSON or a command of LaTeX."""


_LEADS_TO_ANSWER = names(
    "so thus hence therefore then and finally consequently now but well also overall here clearly that as with is was "
    "be get gets give gives gave giving find finds found obtain obtains obtained conclude have has had make makes "
    "making mean means implies imply yield yields say believe think see know state report write provide box because "
    "since"
)
"""Connectives and verbs that lead to a statement of the answer: "which gives the answer"."""

_ARTICLES = names("the our my its this your a an")
_ADJECTIVES = names("final correct right exact numerical")
_NOT_THE_ANSWER = names("wrong incorrect false mistaken expected reference official worst his her their")
"""Words directly before "answer" that speak of another answer than the reply's."""

_CHINESE_LEADS = regex(
    r"(?>(?:[\s*_#【]++|所以|因此|因而|故|于是|从而|综上|所述|最终|最后|正确|的|则|即|那么|得到|可得|得出|我们|可知|这个?|本|该|道|题目?|问题|计算|它|其|应该?|就|也)*)"
)
"""Chinese words before 答案 that lead to the answer; behind any other word 答案 states none, as in 假设答案是36."""

_OPENING = regex(r"\b(?:The|My|Our|Final|Answer|ANSWER)\b")
"""The first word of a label that begins a sentence."""

_MAX_OPENING_CHARS = 12
"""The first word of a label is looked for in this many characters before the label."""

_MAX_LEAD_CHARS = 60
"""Words that lead to a label are read in this many characters before it."""


class Label(NamedTuple):
    """Where a label begins, and where the answer behind it begins."""

    start: int
    end: int


def labels(text: str, lo: int, hi: int) -> Iterator[Label]:
    """Yield the labels of text[lo:hi] that announce an answer and deny none, in the order of the text."""
    for match in _LABEL.finditer(text, lo, hi):
        # A label at the very end announces nothing, as in a response that was cut off.
        if text[match.end() : hi][:1].strip() and not _is_no_statement(text, match, lo, hi):
            yield Label(match.end() - len(match.group().lstrip()), match.end())


def is_doubted(text: str, label: Label, end: int, lo: int, hi: int) -> bool:
    """Whether the sentence of a label, but for its value that ends at `end`, doubts or supposes something."""
    begin, finish = sentence_around(text, label.start, end, lo, hi)
    if (opening := _OPENING.search(text, max(begin, label.start - _MAX_OPENING_CHARS), label.end)) is not None:
        begin = opening.start()  # the formula before it ends without a stop
    return is_guarded_beside_label(text[begin : label.end], text[end:finish])


def in_json(text: str, lo: int) -> Extraction | None:
    """Return the value of the last JSON field "answer" of text[lo:]; None without such a value."""
    field = last_match(_JSON, text, lo, len(text))
    if field is None:
        return None
    begin = field.end()
    if (literal := _JSON_TEXT.match(text, begin)) is not None:
        group = literal.lastindex or 1
        return Extraction(_unescape(literal[group]), *literal.span(group), "phrase")
    value = _JSON_VALUE.match(text, begin)
    # `{` opens a nested object, whose first characters are no value.
    if value is None or value.group() in ("null", "{"):
        return None
    return Extraction(value.group().removeprefix("[").removesuffix("]"), *value.span(), "phrase")


def _unescape(content: str) -> str:
    """Return the text of a JSON string; unchanged if it has LaTeX with single backslashes, or is no JSON."""
    # JSON would read \frac as a form feed and \theta as a tab.
    if any(is_command(name) for name in _BACKSLASHED_NAME.findall(content)):
        return content
    try:
        return str(json.loads(f'"{content}"'))
    except ValueError:
        return content


def _is_no_statement(text: str, match: re.Match[str], lo: int, hi: int) -> bool:
    """Whether a label states no answer: "the wrong answer is 5", or the question "The answer is 5? No, 6.".

    match: of `_LABEL`, in text[lo:hi].
    """
    label = match.group()
    if label[:2] in ("答案", "结果"):
        first = max(lo, match.start() - _MAX_LEAD_CHARS)
        # The clause begins behind the last stop before the label.
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
    """Whether the words before `start`, the position of "answer", leave it unstated: "the wrong answer".

    It is stated if a clause or a line begins with it, its article or its adjective, or if a word of `_LEADS_TO_ANSWER`
    stands before these.
    """
    first = max(lo, start - _MAX_LEAD_CHARS)
    begin, _ = sentence_around(text, start, start, first, start)
    words = text[begin:start].lower().split()
    lead = words[:-1] if words[-1:] == ["final"] else words
    if lead and (lead[-1].strip("(") in _NOT_THE_ANSWER or lead[-2:-1] == ["least"]):
        return True  # "his answer", "the least likely answer"
    if lead and lead[-1] in _ADJECTIVES:
        lead = lead[:-1]
    articles = [index for index, word in enumerate(words) if word in _ARTICLES and index >= len(words) - 3]
    if articles:
        lead = words[: articles[-1]]  # at most two adjectives follow the article
    return bool(lead) and lead[-1][-1].isalnum() and lead[-1] not in _LEADS_TO_ANSWER
