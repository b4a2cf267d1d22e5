r"""Sentences in Chinese behind an option letter that state an option by its text, its number or its letter.

    所以，摸到白球的可能性是2/5。       option B is 2/5: behind \boxed{B} the same answer, behind \boxed{A} another one
    答：对称轴最多的是圆。             the text of an option
    因此是选项D。                    a letter

The statement ends its sentence, behind a verb of being, a colon or 选, and the sentence denies and doubts nothing. Any
such sentence may state the own option, for it says nothing else. Another option counts only in a conclusion or in the
last sentence, if neither that sentence nor a later one states the own option: explanations speak of other options.
Texts are compared without layout, numbers by their value; nothing else is computed here.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from harness.answers.letters import letter_of
from harness.answers.words import without_layout, words_of
from harness.grading.compare.plain_numbers import plain_number

_SENTENCE = re.compile(r"[^。！？!?\n]{1,200}(?P<asks>[？?])?")
_STATES = re.compile(r"(?:[是为选=＝：:]|等于)(?:选项)?(?P<option>[^是为选=＝：:，,；;]{1,60})\Z")
_CONCLUDES = re.compile(
    r"[\s*_#>]*(?:所以|因此|因而|故|综上|于是|从而|可[见知得]|答[：:]|(?:正确|最终|最后)?的?(?:答案|结果))"
)
_DENIES = re.compile("[不没非无未否错误除吗呢若假设]|如果|也许|或许|其实|应[是为该当]|才是|而是|改|可能(?!性)")
"""Signs of words by which a sentence denies, doubts, excludes, supposes or corrects."""

_MARKS = " \t*_`$。.）)】"
_MAX_BEHIND_CHARS = 6_000


class OptionStated(NamedTuple):
    """A sentence, from `start` to `end` in characters of the text, that states an option. letter: the option's."""

    letter: str
    start: int
    end: int


def options_stated(text: str, end: int, hi: int, own: str, choices: tuple[str, ...]) -> list[OptionStated]:
    """Return the sentences of text[end:hi], behind the letter `own`, that state an option by the rules above."""
    if not choices or hi - end > _MAX_BEHIND_CHARS or text[end:hi].isascii():
        return []
    sentences = [match for match in _SENTENCE.finditer(text, end, hi) if match.group().strip(_MARKS)]
    stated: list[OptionStated] = []
    for match in sentences:
        sentence = match.group().strip(_MARKS)
        option = None if match["asks"] or _DENIES.search(sentence) else _STATES.search(sentence)
        letter = None if option is None else _letter(option["option"].strip(_MARKS), choices)
        if letter is None:
            continue
        counts = _CONCLUDES.match(sentence) is not None or match is sentences[-1]
        own_text = choices[ord(own) - ord("A")]
        if letter == own or (counts and own_text not in sentence and f"选项{own}" not in sentence):
            stated.append(OptionStated(letter, match.start(), match.end()))
    return stated


def _letter(option: str, choices: tuple[str, ...]) -> str | None:
    """Return the letter of the one option that `option` names by its letter, its text or its number; else None."""
    last = chr(ord("A") + len(choices) - 1)
    if (letter := letter_of(option, last)) is not None:
        return letter
    signs, words, number = without_layout(option), words_of(option), plain_number(option)
    fitting = [
        index
        for index, choice in enumerate(choices)
        if signs == without_layout(choice)
        or (words and words == words_of(choice))
        or (
            number is not None
            and (value := plain_number(choice)) is not None
            and number.top * value.bottom == value.top * number.bottom
        )
    ]
    return chr(ord("A") + fitting[0]) if len(fitting) == 1 else None
