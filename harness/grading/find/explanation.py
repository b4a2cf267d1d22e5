"""Sections that explain an answer in Chinese, behind it: 【解析】…, **解析**：…, 分析：….

A section begins with one of the titles of schoolbooks, `_TITLE`, and ends with the reply or with any other title. What
stands in it is the work. It corrects the answer only by a word of correction (等等, 更正, 其实 …), and states an
answer of its own only if a noun of an answer announces it (故答案为, 正确答案是), or if the section ends in a
conclusion (所以, 因此, 故), in a result (解得, 最后, 一共), in nothing but a value, or in a judgement (这句话是对的).

A contrast is no correction if it speaks of the work, `contrasts_work`: 2是偶数，但2不是合数. Its clause has a subject
of its own and no word for the answer or for what stands before. Beside an option or a judgement it holds no judgement
and not the answer; beside a value it holds no number and no letter, so that it says nothing of a value.
"""

from __future__ import annotations

import re

_TITLE = re.compile(
    r"[\s*_#>【\[]*(?:答案|试题)?(?:解析|分析|详解|解答|解题|思路|过程|理由|说明|点评|点睛|点拨|考点)(?:过程|思路|步骤|分析|依据|说明)?"
    r"[\s*_]*(?:】|[\s*_】\]]*(?:[：:]|\Z))"
)
"""How a section of explanation begins: its title in 【】 or before a colon, or nothing but its title."""

_OTHER_TITLE = re.compile(r"[\s*_#>]*(?:【[^】\n]{1,12}】|[\u3400-\u9fff]{2,6}[\s*_]*[：:])")
_CONCLUSION = re.compile(r"\s*(?:所以|因此|因而|故|综上|解得|最[后终]|结果|共有|一共|总共|只有|应?选|答[：:])")
_NOTHING_BUT_VALUE = re.compile(r"[\s*_]*[^\s\u3400-\u9fff=＝][^\u3400-\u9fff=＝]{0,40}")


CONTRAST = re.compile("(?:但是?|然而|却|而是)+")
"""Words of contrast."""

_OF_ANSWER = re.compile("[对错误√×我你它这那此该本上前解题选才应只仅除可]|答|结[果论]|所求|刚|正确|最[后终]")
"""Words by which a contrast may speak of the answer, judge it or limit it."""

_DENIES = re.compile("[不没非无未否勿]")


def contrasts_work(clause: str, own: str, *, is_value: bool) -> bool:
    """Whether a clause with a word of contrast speaks of the work. own: the answer; is_value: it is neither an option
    nor a judgement.
    """
    rest = CONTRAST.sub("", clause, count=1).strip()
    if rest == clause.strip() or CONTRAST.search(rest) or not rest or _DENIES.match(rest) or _OF_ANSWER.search(rest):
        return False
    return own not in rest and not (is_value and re.search(r"[\dA-Za-z\\$]", rest))


def explains(sentences: list[str]) -> list[bool]:
    """Return for each sentence behind an answer whether it stands in a section that explains the answer."""
    inside, marks = False, []
    for sentence in sentences:
        if _TITLE.match(sentence) is not None:
            inside = True
        elif inside and _OTHER_TITLE.match(sentence) is not None:
            inside = False
        marks.append(inside)
    return marks


def opens(line: str) -> bool:
    """Whether a line begins a section of explanation."""
    return _TITLE.match(line) is not None


def concludes(sentence: str) -> bool:
    """Whether a clause of such a sentence concludes, 移项得2x>6，所以x>3, or the sentence is nothing but a value."""
    text = _TITLE.sub("", sentence, count=1)
    return _NOTHING_BUT_VALUE.fullmatch(text) is not None or any(map(_CONCLUSION.match, re.split("[，,；;]", text)))
