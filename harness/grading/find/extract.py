r"""Finding the answer in a response: after the reasoning, from the end, in linear time.

Order of the forms: the last complete box · the last explicit phrase ("the answer is", "####", "A:", 答案是 …) ·
the last formula · the last number. The first form that is present decides; nothing is tried until it fits.
A response that the budget cut off is only searched for a box or an explicit phrase.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from harness.answers.bounds import MAX_ANSWER_CHARS
from harness.answers.boxed import Box, boxes_from_end, has_box, is_broken, open_box
from harness.answers.letters import letter_of
from harness.grading.bounds import TAIL_CHARS
from harness.grading.find.choice import choice_in_prose, stated_choice
from harness.grading.find.reasoning import final_part

Method = Literal["box", "boxes", "open box", "phrase", "formula", "number", "letter", "line"]


class Found(NamedTuple):
    """An answer as it stands in the text: its words, where they stand, and the form that gave it away."""

    answer: str
    start: int
    end: int
    method: Method


_CONNECTOR = re.compile(
    r"(?i)(?:[\s$,;、，；.()\[\]*]|\\[()\[\],;:! ]|\\q?quad|and|or|和|或|\\text\{\s*(?:and|or)\s*\})*"
)
_PHRASE = re.compile(
    r"""(?x)
    \#{4}[ \t]*
    | (?i:final\s+answer)\s*(?:\*\*|__)?\s*(?i:is|are|:|：|=|\n)+ \s*
    | (?i:\banswer)s?\s*(?:\*\*|__)?\s*(?i:(?:is|are)\b\s*[:：]?|[:：=])\s*(?:\*\*|__)?\s*
    | (?i:\banswer)\s*(?=\$|\\\(|\\\[)
    | (?:^|\n)[ \t]*A\s*[:：]\s*
    | (?:最终答案|答案|结果)\s*(?:应?[是为]|[:：])+\s*
    | <answer>\s*
    | (?:故选|应选|故答案[是为]|所以选)\s*[:：]?\s*
    """
)
_MATH = re.compile(r"\$\$(.{1,2000}?)\$\$|\$([^$\n]+)\$|\\\((.{1,2000}?)\\\)|\\\[(.{1,2000}?)\\\]", re.DOTALL)
_MATH_LIST = re.compile(r"[\s,;、，]*(?:and|or|和|或)?[\s,]*(?=\$|\\\()")
_SENTENCE_END = re.compile(
    r"""(?x) \n | </answer> | [.!?](?=\s|$|["'*]) | [。！？] | [;；](?=\s)
    | \s+(?i:because|since|which|where\s+we|as\s+(?:the|we|it)|so\s+(?:the|we)|hence|therefore|i\s+hope)\b
    | [,，]\s*(?i:because|since|which|so|hence|therefore|and\s+we)\b"""
)
_NUMBER = re.compile(
    r"""(?x) (?<![\w.]) (?:[-−–](?=[\d.$]))? [$€£¥]? [-−]?
    (?: \d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d) | \d+/\d+ | \d+(?:\.\d+)? | \.\d+ ) (?:[eE][+-]?\d+)? %? """
)
_WORD = re.compile(r"[A-Za-z]{2,}")
_COMMAND = re.compile(r"\\[A-Za-z]+")
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_SPECIAL = re.compile(r"<\|[^|<>\n]{1,40}\|>|</s>|<end_of_turn>|<eos>")


def extract(
    text: str | None, *, kind: str = "expression", several_boxes: bool = False, truncated: bool = False, last: str = "Z"
) -> Found | None:
    """The one answer of a response, or None. Positions are characters of `text`; `last` is the last option letter."""
    if not text:
        return None
    part = final_part(text)
    if part is None:
        return None
    found = extract_from(text, *part, kind=kind, several_boxes=several_boxes, truncated=truncated, last=last)
    return None if found is None else found._replace(answer=bounded(found.answer))


def bounded(answer: str) -> str:
    """`answer` without needless white space when it is long; one that is still too long is cut and marked so."""
    if len(answer) <= MAX_ANSWER_CHARS:
        return answer
    answer = " ".join(answer.split())
    return answer if len(answer) <= MAX_ANSWER_CHARS else f"{answer[:MAX_ANSWER_CHARS]} …[cut"


def extract_from(
    text: str, lo: int, hi: int, *, kind: str, several_boxes: bool, truncated: bool, last: str
) -> Found | None:
    """As `extract`, within text[lo:hi] and without looking for reasoning."""
    boxes = boxes_from_end(text, lo, hi)
    box = next(boxes, None)
    if box is not None:
        if is_broken(text, box, lo, hi):
            return None
        stated = _stated_later(text, box.outer_end, hi)
        if stated is None and kind == "choice" and letter_of(box.content, last, any_case=True) is None:
            stated = _choice_beside(text, box, lo, hi, last)
        if stated is not None:
            return stated
        if several_boxes:
            return _joined(text, box, boxes)
        return Found(box.content, box.start, box.end, "box")
    lo = max(lo, hi - TAIL_CHARS)
    tail = text[lo:hi]
    if not truncated and (broken := open_box(text, lo, hi)) is not None:
        return Found(broken.content, broken.start, broken.end, "open box")
    if kind == "choice" and (choice := choice_in_prose(tail, last)) is not None:
        return Found(choice.answer, lo + choice.start, lo + choice.end, "letter")
    phrase = _after_phrase(tail, kind)
    if phrase is None and not truncated and not has_box(text, lo, hi):
        tail = _FENCE.sub(lambda match: " " * len(match.group()), tail)
        phrase = _whole_line(tail) or _last_formula(tail) or _last_number(tail)
    if phrase is None:
        return None
    return phrase._replace(start=lo + phrase.start, end=lo + phrase.end)


def _choice_beside(text: str, box: Box, lo: int, hi: int, last: str) -> Found | None:
    """The letter that is stated beside a box that holds none: behind it, or else in front of it."""
    for begin, end in ((box.outer_end, hi), (lo, box.outer_start)):
        begin = max(begin, end - TAIL_CHARS)
        if (choice := stated_choice(text[begin:end], last)) is not None:
            return Found(choice.answer, begin + choice.start, begin + choice.end, "letter")
    return None


def candidates(text: str, limit: int) -> list[str]:
    """Contents of the last `limit` boxes anywhere in the text, reasoning included."""
    contents = []
    for box in boxes_from_end(text):
        contents.append(bounded(box.content))
        if len(contents) == limit:
            break
    return contents


def _joined(text: str, last: Box, earlier: object) -> Found:
    """The boxes of the last sentence, when only commas and "and" stand between them."""
    chain = [last]
    for box in earlier:  # type: ignore[attr-defined]
        gap = text[box.outer_end : chain[-1].outer_start]
        if len(gap) > 60 or _CONNECTOR.fullmatch(gap) is None or len(chain) >= 64:
            break
        chain.append(box)
    if len(chain) == 1:
        return Found(last.content, last.start, last.end, "box")
    chain.reverse()
    return Found(", ".join(box.content for box in chain), chain[0].start, last.end, "boxes")


def _stated_later(text: str, lo: int, hi: int) -> Found | None:
    """ "The final answer is $…$." behind the last box: the sentence that few-shot prompts teach, and it comes last."""
    if hi - lo > TAIL_CHARS or (at := text.rfind("inal answer is", lo, hi)) < 0:
        return None
    formula = _MATH.match(text, at + len("inal answer is "), hi)
    if formula is None:
        return None
    return Found(formula.group(), formula.start(), formula.end(), "phrase")


def _after_phrase(tail: str, kind: str) -> Found | None:
    found = None
    for match in _PHRASE.finditer(tail):
        if tail[match.end() : match.end() + 1].strip():
            found = match
    if found is None:
        return None
    return _statement(tail, found.end(), "phrase", kind)


def _statement(tail: str, start: int, method: Method, kind: str) -> Found | None:
    """What stands from `start` to the end of the sentence: formulas when it opens with one, else words."""
    while start < len(tail) and tail[start] in " \t*_:：":
        start += 1
    formula = _MATH.match(tail, start)
    if formula is not None:
        end = formula.end()
        while (link := _MATH_LIST.match(tail, end)) is not None and (more := _MATH.match(tail, link.end())) is not None:
            end = more.end()
        unit = re.compile(r"[ ]?(?:%|°|\\%|degrees?\b|percent\b)").match(tail, end)
        return Found(tail[start : unit.end() if unit else end], start, unit.end() if unit else end, method)
    stop = _SENTENCE_END.search(tail, start)
    end = stop.start() if stop else len(tail)
    special = _SPECIAL.search(tail, start, end)
    end = special.start() if special else end
    answer = tail[start:end].strip().strip("*_").rstrip(".。 ").strip()
    inner = list(_MATH.finditer(answer))
    if inner and len(answer) - sum(len(match.group()) for match in inner) > 3:
        # "the largest $n$ is 34": words around a formula are not part of the answer
        after = answer[inner[-1].end() :].strip()
        number = _last_number(after) if re.search(r"(?:is|=|are|：|为)\s*\S", after) else None
        if number is not None:
            at = tail.rfind(number.answer, start, end)
            return Found(number.answer, at, at + len(number.answer), method)
        return Found(inner[-1].group(), start + inner[-1].start(), start + inner[-1].end(), method)
    numbers = list(_NUMBER.finditer(answer)) if kind != "text" and len(_WORD.findall(answer)) > 3 else []
    if len(numbers) == 1:
        # "Jane started 3 hours ago": one number in a sentence is what the sentence says
        at = tail.find(numbers[0].group(), start)
        return Found(numbers[0].group(), at, at + len(numbers[0].group()), method)
    if answer:
        at = tail.find(answer, start)
        return Found(answer, at, at + len(answer), method)
    return None


def _whole_line(tail: str) -> Found | None:
    """A response that is nothing but a short answer."""
    answer = _SPECIAL.sub("", tail).strip()
    if not answer or len(answer) > 200 or "\n" in answer or len(_WORD.findall(_COMMAND.sub("", answer))) > 2:
        return None
    at = tail.find(answer)
    return Found(answer, at, at + len(answer), "line") if at >= 0 else None


def _last_formula(tail: str) -> Found | None:
    found = _last(_MATH, tail)
    if found is None:
        return None
    if (number := _last_number(tail[found.end() :])) is not None and re.search(r"\bis\b|=", tail[found.end() :]):
        return number._replace(start=found.end() + number.start, end=found.end() + number.end)
    return Found(found.group(), found.start(), found.end(), "formula")


def _last(pattern: re.Pattern[str], tail: str) -> re.Match[str] | None:
    match = None
    for match in pattern.finditer(tail):  # noqa: B007  only the last one is wanted
        pass
    return match


def _last_number(tail: str) -> Found | None:
    found = _last(_NUMBER, tail)
    return Found(found.group(), found.start(), found.end(), "number") if found is not None else None


__all__ = ["Found", "Method", "candidates", "extract", "extract_from"]
