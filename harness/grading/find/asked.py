r"""A last sentence that is the question with a quantity in place of its 多少 or 几: its quantity is what was asked for.

    每段最长是多少？               答：每段最长是 $\boxed{6\text{ 分米}}$。         6 分米
    几分钟可以到达？               答：$\boxed{12}$ 分钟可以到达。               12 分钟
    9个零件至少称几次？            答：至少称2次。                           2次

In such a sentence 每, 最多 and 至少 limit nothing that the question does not limit, too. The words before the quantity
must be the end of those before 多少 in the last clause that asks; the beginning that they leave out may limit nothing.
The words behind the unit must be the end of those behind 多少. A sentence with one word more is read as any other. The
sentence is the last one of the reply, and a box stands in it or nowhere.
"""

from __future__ import annotations

import re
from functools import lru_cache

from harness.answers.words import without_text_commands
from harness.grading.find.chinese import CLASSIFIER, LEAD, NUMERAL_SIGNS, UNIT, limits
from harness.grading.find.chinese_answers import agrees

MAX_CHARS = 200
"""Longest last sentence, with its markup, and longest clause of a question that are read, in characters."""

_CLAUSE = r"([^，,。；;：:？?！!\n]*)"
_ASKS = re.compile(rf"{_CLAUSE}(?:百分之几|几分之几|多少|(?<![第十])几(?![何乎十百千万])){_CLAUSE}")
_LABEL = re.compile(rf"(?:\A|(?<=[。！？\n]))[\s*]*(?:(?:答(?:案)?\s*[:：]|{LEAD})[\s*]*)+")
_SENTENCE = re.compile(r"[^。！？!?\n]+[。！!\s*_$]*\Z")
BOX = re.compile(r"\\(?:boxed|fbox|framebox)\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
"""A box whose content, its group, has no braces within braces."""

_LAYOUT = re.compile(r"\\[,;:! ()\[\]]|[\s*_$~]")
_UNIT = rf"(?:{UNIT})(?:/(?:{UNIT}))?|{CLASSIFIER}|[倍成折]|\\?[%％]"
OWN_UNIT = re.compile(_UNIT)
_QUANTITY = re.compile(
    rf"(?P<number>[-−]?\d+(?:\.\d+)?(?:/\d+|[万亿])?|\\[dt]?frac\{{\d+\}}\{{\d+\}}|[{NUMERAL_SIGNS}]+(?:分之[{NUMERAL_SIGNS}]+)?)"
    rf"(?P<unit>{_UNIT})?"
)


_NAMED = re.compile(
    rf"(?:{LEAD}|[，,\s])*(?P<name>[\u3400-\u9fff]{{1,10}}?)(?:[是为有=＝:：]|等于)[\s$]*(?:[-−]?\d|\\|[{NUMERAL_SIGNS}]).{{0,60}}"
)
_NO_NAME = re.compile(
    "答案|结果|结论|解析|解答|验证|验算|单位|最终|最后|正确|应该|得数|原式|一共|总共|合计|大约|系数|[的是有了共总个这那它他她们在和与各为吗呢把求出要能可以约合解答]"
)
"""Words and signs that name nothing of what a question asks for."""

_EXTREME = re.compile("最(.)")


def names_another(question: str, answer: str) -> bool:
    """Whether an answer names its value (面积是18厘米) by no sign of what the question asks for (周长多少): neither one
    common character, nor the same extreme (最大值 beside 最小值).

    False if the question or the answer names nothing. A name that has one character in common is not read further.
    """
    named = _NAMED.fullmatch(answer.strip()) if len(answer) <= MAX_CHARS else None
    clause = None if named is None else _clause_that_asks(question)
    # Before a unit, as in 要付多少元, the words may name a deed: 总价 answers them.
    if named is None or clause is None or clause[1] not in ("", "钱"):
        return False
    names = [set(re.findall("[\u3400-\u9fff]", _NO_NAME.sub("", words))) for words in (named["name"], clause[0])]
    extremes = [set(_EXTREME.findall(words)) for words in (named["name"], clause[0])]
    return all(names) and (not names[0] & names[1] or (all(extremes) and not extremes[0] & extremes[1]))


def asked_quantity(question: str, text: str, lo: int, hi: int) -> tuple[str, str, int] | None:
    """Return the quantity of the last sentence of text[lo:hi], the words before it, and where the sentence begins
    behind its label, if the sentence is the question with this quantity; None for any other.
    """
    clause = _clause_that_asks(question)
    sentence = None if clause is None else _SENTENCE.search(text, max(lo, hi - MAX_CHARS), hi)
    if clause is None or sentence is None:
        return None
    label = _LABEL.match(text, sentence.start(), hi)
    begin = sentence.start() if label is None else label.end()
    if "box" in text[lo:begin] or (label is None and not agrees(text[lo:begin], text[begin:hi])):
        return None
    plain = _LAYOUT.sub("", without_text_commands(BOX.sub(r"\1", text[begin:hi]))).rstrip("。！!")
    for quantity in _QUANTITY.finditer(plain):
        head, tail = plain[: quantity.start()], plain[quantity.end() :]
        # Behind 多少人 stands a unit, so that the 人 of 36个人 is part of the answer's.
        behind = OWN_UNIT.sub("", clause[1], count=1) if quantity["unit"] and OWN_UNIT.match(clause[1]) else clause[1]
        if (head or tail) and clause[0].endswith(head) and behind.endswith(tail):
            left_out = clause[0].removesuffix(head) if head else ""
            return None if limits(left_out) or "每" in left_out else (quantity.group(), head, begin)
    return None


@lru_cache(maxsize=1_024)
def _clause_that_asks(question: str) -> tuple[str, str] | None:
    """Return the words before and behind 多少 in the last clause with it; None if the question has none."""
    clauses = _ASKS.findall(question)
    before, behind = ("".join(words.split()) for words in clauses[-1]) if clauses else ("", "")
    return (before, behind) if clauses and len(before) + len(behind) <= MAX_CHARS else None
