r"""Clauses in Chinese that are a value as a whole, so that no part of one is taken for the value.

    a judgement         这句话是错误的 · 原题的说法正确 · 所以错误         read as in a reply that judges (`chinese`)
    named quantities    商是5，余数是2 · 长方形的长是12厘米，宽是6厘米     read as in answers (`named_quantities`)
    a formula           x≥2 · 2√3 · （2，－1） · x₁=3，x₂=-2 · 1/8；5/8

A formula reaches back from the end of its sentence to the Chinese word before it; only 或, 且 and 和 may stand
within. Commas outside of brackets separate its parts. It has several of them only if all are of one kind: bare values,
relations, or values of names beside an answer that has several, too. Else the last part is the formula: 3+4=7，4+5=9
ends in 4+5=9. This suffices: what is handed on is compared as it stands, so that more text than a value equals no
reference.
"""

from __future__ import annotations

import re

from harness.answers.words import without_text_commands
from harness.grading.compare.named_quantities import names_quantities
from harness.grading.find.chinese import LEAD, judgement
from harness.grading.find.repeated import plain
from harness.grading.find.several import parts_of

MAX_CHARS = 120
"""Longest formula that is read, in characters; a longer one is none."""

JUDGEMENTS = frozenset(("对", "错", "正确", "错误", "不对", "不正确", "√", "×"))
"""Words and signs that judge a statement."""

_LEADS = re.compile(rf"\s*(?:{LEAD}|综上\s*[，,]\s*)*")
_BARE_JUDGEMENT = re.compile(r"(?:是)?(不正确|正确|错误|不对|对|错)的?")
_OWNER = re.compile(r"[\u3400-\u9fff]{1,10}?的(?=[\u3400-\u9fff])")
_OF_FORMULA = re.compile(r"[^\u3400-\u9fff\n]|[或且和]")
_ITEMS_COUNTED = re.compile(r"[，,]\s*(?:一?共|总共)有?\d{1,2}个\Z")
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{5,}")
_HAS_VALUE = re.compile(r"[\d∞π√]|\\[a-z]|[A-Za-z]")
_EDGES = " \t:：=＝,，、;；*_.。"
_SEPARATORS = ",，、;；"
_IS_RELATION = re.compile(r"[<>≤≥≠＜＞⩽⩾≦≧]|\\(?:[lg]eq?q?(?:slant)?|[lg]t|neq?)(?![A-Za-z])")
_IS_EQUATION = re.compile(r"[=＝≈]|\\approx(?![A-Za-z])")


def is_judgement(answer: str) -> bool:
    r"""Whether an answer judges a statement: 错误, `\text{正确}`, √."""
    return plain(without_text_commands(answer)) in JUDGEMENTS


def judged_in(clause: str) -> str:
    """Return the word by which a clause as a whole judges a statement; empty if it has another form."""
    lead = _LEADS.match(clause)
    rest = clause[0 if lead is None else lead.end() :].strip(' \t*_。.！!“”"')
    if (bare := _BARE_JUDGEMENT.fullmatch(rest)) is not None:
        return bare[1]
    span = judgement(rest)
    # A reason may follow the word in a reply; behind an answer it is a clause of its own.
    return "" if span is None or rest[span[1] :].strip() else rest[slice(*span)].removesuffix("的")


def row_in(sentence: str, answer: str) -> str:
    """Return the named quantities that a sentence is behind its lead and the owner of the first name; empty if it, or
    the answer, is no row of them.
    """
    if not names_quantities(answer):
        return ""
    lead = _LEADS.match(sentence)
    rest = sentence[0 if lead is None else lead.end() :].strip()
    owner = _OWNER.match(rest)
    return rest if names_quantities(rest) and owner is None else _row_of_owner(rest, owner)


def _row_of_owner(rest: str, owner: re.Match[str] | None) -> str:
    """Return 长是12厘米，宽是6厘米 of 长方形的长是12厘米，宽是6厘米; empty if no row of quantities stands there."""
    row = "" if owner is None else rest[owner.end() :]
    return row if names_quantities(row) else ""


def formula_at_end(sentence: str, answer: str) -> int:
    """Return where the formula begins that ends a sentence; the length of the sentence if none does."""
    counted = _ITEMS_COUNTED.search(sentence)
    end = len(sentence) if counted is None else counted.start()
    begin = end
    while begin > 0 and _OF_FORMULA.match(sentence, begin - 1) is not None:
        begin -= 1
        if end - begin > MAX_CHARS:
            return len(sentence)
    run = sentence[begin:end]
    if _HAS_VALUE.search(run) is None or _WORD.search(run) is not None:
        return len(sentence)
    start = begin + _first_part(run, answer)
    while start < end and sentence[start] in _EDGES + "或且和":
        start += 1
    return start


def is_formula(line: str, answer: str) -> bool:
    """Whether a line is one formula, as `formula_at_end` reads it."""
    return bool(line) and formula_at_end(line, answer) == 0


def _first_part(run: str, answer: str) -> int:
    """Return where the parts of a formula begin that belong together with the last one."""
    starts, depth = [0], 0
    for index, sign in enumerate(run):
        depth += (sign in "([{（") - (sign in ")]}）")
        if depth <= 0 and sign in _SEPARATORS:
            starts.append(index + 1)
    pairs = list(zip(starts, [*starts[1:], len(run)], strict=True))
    kind = _kind_of(run[slice(*pairs[-1])])
    if kind == "equation" and parts_of(answer) < 2:
        return pairs[-1][0]
    first = pairs[-1][0]
    for start, end in reversed(pairs[:-1]):
        if _kind_of(run[start:end]) != kind:
            break
        first = start
    return first


def _kind_of(part: str) -> str:
    """Return whether a part of a formula is a relation, an equation or a bare value; empty for no part."""
    if not part.strip(_EDGES):
        return ""
    if _IS_RELATION.search(part):
        return "relation"
    # The sign before a whole formula, 原式=2√3，…, names nothing.
    return "equation" if _IS_EQUATION.search(part.strip(_EDGES)) else "value"
