r"""What stands behind an answer: "The answer is 12." states 12 only if nothing behind it corrects or doubts it.

Two questions decide, in each language:

    do its words deny, correct or limit the answer?    "wait", "should be", 不对, 其实          then it is open
    does it state another value as an answer?          "So we get $\frac12$.", 所以是3角        then both must agree

The first is asked of each sentence (`behind_english`, `behind_chinese`; amid a long text, `N_NEAR`, only words of
correction count), the second of the sentences that state a value (`behind_values`): those that announce it by a noun
of an answer ("the answer is 5"), and the last one. The values are handed on as text, for nothing here reads a value;
the answer counts only if each of them gets the same verdict (`harness.grading.verdict.as_stated`). If the last such
value stands behind all sentences that deny the answer, they do not count: "Wait, let me check. … So the total is 12."
What stands in brackets directly behind a box is handed on as a value, too, unless it is a remark: `\boxed{3}（即三）`.
"""

from __future__ import annotations

import re

from harness.grading.find.behind_chinese import closes_in_chinese, leaves_in_chinese
from harness.grading.find.behind_english import MARKS, closes_in_english, leaves_in_english, speaks_of_others
from harness.grading.find.behind_values import MAY_ANNOUNCE, Stated, repeated, stated_in_chinese, stated_in_english
from harness.grading.find.explanation import concludes, explains
from harness.grading.find.refusals import is_repaired, is_taken_back
from harness.grading.find.repeated import is_letter, letter_in, plain
from harness.grading.find.rest_of_sentence import leaves_value, restatement
from harness.grading.find.whole_clause import is_judgement

MAX_VALUES = 4
"""Largest number of different values behind an answer that are compared; with more of them the answer is open."""

MAX_BEHIND_CHARS = 6_000
"""The text behind an answer is looked at this far, in characters; so is the end of a longer text."""

N_NEAR = 3
"""Number of sentences at each end of a text behind an answer that are looked at most strictly.

Between them a whole solution may stand, whose sentences speak of many things.
"""

_STOP = re.compile(r"(?:[.?]|(?<![\d)])!|!(?!\s*[-=+*/)$\\\d]))+(?=[\s\"'”*)$\]}]|\\[)\]]|\Z)|\n+|[。！？]+")
_CLOSES_FORMULA = re.compile(r"(?:[}$*_` \t)]|\\[)\]])*")
_CODE = re.compile(r"(?s)```.*?(?:```|\Z)|\[asy\].*?(?:\[/asy\]|\Z)")
_TAGS = re.compile(
    r"\\(?:boxed|fbox|framebox)\s*\{[\s.?_…]*\}|<\|[^|<>\n]{1,40}\|>\w*|</?\w+>|\\(?:end|begin)\s*\{[a-z]+\*?\}"
    r"|\\[,;!]"
)
_DISPLAY = re.compile(r"(?s)\$\$.{1,600}?\$\$|\\\[.{1,600}?\\\]")
_ITEM = re.compile(r"(?m)^[ \t]*\d{1,2}[.)][ \t]+(?=\S)|\n[ \t]*\d{1,2}[.)][ \t]+(?=\S)")
_COMMAND = re.compile(r"\\[A-Za-z]+")
_UNIT_OF_BOX = re.compile(r"\A\s*\\(?:text|mathrm|mbox|rm)\s*\{[^{}]*\}")
_HAN = re.compile(r"[\u3400-\u9fff]")
_LATIN_WORD = re.compile(r"(?<![A-Za-z])(?![A-Z]+(?![A-Za-z]))[A-Za-z]{2,}")
"""A word; a letter or capitals, such as x and AB, belong to a formula in any language."""

_OTHER_LETTER = re.compile(r"[\u0370-\u1dff\u2e80-\uffff]")

_SCRIPTS = tuple(
    re.compile(f"[{signs}]")
    for signs in (
        "A-Za-z",
        "\u3400-\u9fff",
        "\u3040-\u30ff",
        "\uac00-\ud7af",
        "\u0400-\u052f",
        "\u0590-\u05ff",
        "\u0600-\u06ff",
        "\u0e00-\u0e7f",
    )
)
_MAX_SCRIPTS = 3
"""A text in more scripts than this is noise, in which no sentence says anything."""

_SAYS_AGAIN = r"\s*(?:即|也就是|就是|或者?(?:写[作成])?|也?可以?写[作成]|[写记]作|=)?[:：为是]?\s*"
_IN_BRACKETS = re.compile(
    rf"(?:[}}$*_` \t]|\\[)\]])*(?:（{_SAYS_AGAIN}(?P<full>[^（）\n]{{1,80}})）"
    rf"|\({_SAYS_AGAIN}(?P<half>(?:[^()（）\n]|\([^()\n]{{1,40}}\)){{1,80}})\))(?=[\s*_。.！!，,；;]|\Z)"
)
"""Brackets behind a box, up to the next mark, that may hold its value again: `\\boxed{x\\geq3}（即x≥3）`."""

_BEHIND_LETTER = re.compile(r"[)）\]】}$* \t]*(?P<mark>[.．、:：]?)(?=[^\n])")


def values_behind(text: str, end: int, hi: int, answer: str, *, is_boxed: bool = False) -> tuple[str, ...] | None:
    """Return the values that text[end:hi], which stands behind an answer, states as an answer in another spelling, in
    the order of the text; None if it leaves the answer open. is_boxed: the answer stands in a box.
    """
    bracket = _IN_BRACKETS.match(text, end, hi) if is_boxed else None
    # Brackets that would leave the answer open by themselves are a value: what they hold must get its verdict.
    if bracket is not None and _values_behind(text, end, bracket.end(), answer, is_boxed=True) != ():
        rest = _values_behind(text, bracket.end(), hi, answer, is_boxed=True)
        held = (bracket["full"] or bracket["half"]).strip(" \t*_`$")
        return None if rest is None else (held, *rest)
    return _values_behind(text, end, hi, answer, is_boxed=is_boxed)


def _values_behind(text: str, end: int, hi: int, answer: str, *, is_boxed: bool) -> tuple[str, ...] | None:
    """Return what `values_behind` returns, of a text in which no value stands in brackets directly behind a box."""
    if not text[end:hi].strip(MARKS + "\n。"):
        return ()  # most answers end the reply
    # The text of an option, behind its letter and a dot, belongs to the answer's own sentence.
    answer = letter_in(answer) or answer
    closing = (_BEHIND_LETTER if is_letter(answer) else _CLOSES_FORMULA).match(text, end, hi)
    start = end if closing is None else closing.end()
    if sum(script.search(text, start, hi) is not None for script in _SCRIPTS) > _MAX_SCRIPTS:
        return ()
    sentences = _sentences(text, start, hi)
    if closing is not None and closing.re is _BEHIND_LETTER:
        sentences[0] = f"{closing['mark']}{sentences[0]}"
    explained = explains(sentences)
    open_ones = [
        index
        for index in range(len(sentences))
        if (index == 0 and not _leaves_rest(sentences, answer, explained, is_boxed))
        or not _is_harmless(sentences, index, answer, explained)
    ]
    last_open = max(open_ones, default=0 if is_repaired(text, end, hi) or is_taken_back(text, end, hi) else -1)
    values = _stated(sentences, max(last_open, 0), answer, explained)
    if last_open < 0 or (values and values[-1][0] > last_open):
        own = plain(answer)
        others = dict.fromkeys(stated.value for _, stated in values if plain(stated.value) != own)
        return tuple(others) if len(others) <= MAX_VALUES else None
    return None


def _stated(sentences: list[str], first: int, answer: str, explained: list[bool]) -> list[tuple[int, Stated]]:
    """Return the values that sentences[first:] state, with the number of their sentence: those that a noun of an answer
    announces, and the last one.

    explained: whether each sentence stands in a section of explanation, of which only a conclusion at the end counts.
    """
    values: list[tuple[int, Stated]] = []
    is_last = True  # no sentence but closings stands behind
    for index in range(len(sentences) - 1, first - 1, -1):
        sentence = sentences[index]
        sentence = (sentence if index else _UNIT_OF_BOX.sub("", sentence)).lstrip(".．,，;； ")
        if sentence.endswith(("?", "？")) or speaks_of_others(sentence.strip(MARKS), answer):
            continue
        is_far = N_NEAR <= index < len(sentences) - N_NEAR
        if index and (values or is_far) and not is_letter(answer) and MAY_ANNOUNCE.search(sentence) is None:
            is_last = False
            continue
        is_chinese = _is_chinese(sentence)
        read, closes = (stated_in_chinese, closes_in_chinese) if is_chinese else (stated_in_english, closes_in_english)
        stated = read(sentence, answer, is_last=is_last)
        if index == 0 and not is_letter(answer) and (value := restatement(sentences[0])) is not None:
            stated = Stated(value, announced=True)
        if explained[index] and not (is_last and (concludes(sentence) or is_judgement(answer))):
            stated = stated if stated is not None and stated.announced else None
        elif stated is None and not values:
            stated = repeated(sentence, answer)
        if stated is not None and (stated.announced or not (values or is_far)):
            values.insert(0, (index, stated))
        is_last = is_last and closes(sentence.strip(MARKS))
    return values


def _sentences(text: str, end: int, hi: int) -> list[str]:
    """Return the sentences of text[end:hi]; the first is the rest of the answer's own sentence."""
    parts = [text[end:hi]]
    if hi - end > 2 * MAX_BEHIND_CHARS:
        parts = [text[end : end + MAX_BEHIND_CHARS], text[hi - MAX_BEHIND_CHARS : hi]]
    sentences = []
    for part in parts:
        bare, begin = _TAGS.sub(" ", _CODE.sub("\n", part)), 0
        bare = _DISPLAY.sub(lambda formula: formula.group().replace("\n", " "), _ITEM.sub("\n", bare))
        for stop in _STOP.finditer(bare):
            asks = "?" if "?" in stop.group() or "？" in stop.group() else ""
            sentences.append(bare[begin : stop.start()] + asks)
            begin = stop.end()
        sentences.append(bare[begin:])
    return [sentences[0].strip(" \t*_`$"), *(sentence for sentence in sentences[1:] if sentence.strip(MARKS))]


def _is_chinese(sentence: str) -> bool:
    """Whether a sentence has more Chinese characters than letters in Latin words."""
    n_han = len(_HAN.findall(sentence))
    return n_han > 0 and n_han >= sum(map(len, _LATIN_WORD.findall(_COMMAND.sub("", sentence))))


def _leaves_rest(sentences: list[str], answer: str, explained: list[bool], is_boxed: bool) -> bool:
    """Whether the rest of the answer's own sentence is of the closed list of `rest_of_sentence`; true for a rest with
    letters of other scripts than Latin, and behind a letter, whose option may have any text.
    """
    rest = sentences[0]
    is_read = _OTHER_LETTER.search(rest) is None and not is_letter(answer) and not is_boxed
    begins_sentence = rest[:1].isupper() and rest[:2] != "I " and " " in rest
    if "(?" in rest:
        return False
    if not is_read or not rest.strip(MARKS) or begins_sentence or closes_in_english(rest.strip(MARKS)):
        return True
    states = any(index == 0 for index, _ in _stated(sentences, 0, answer, explained))
    return leaves_value(rest, answer=answer, states=states)


def _is_harmless(sentences: list[str], index: int, answer: str, explained: list[bool]) -> bool:
    """Whether one sentence behind an answer cannot correct it. explained: see `_stated`."""
    sentence = sentences[index].strip(MARKS) if index else sentences[0]
    is_far = N_NEAR <= index < len(sentences) - N_NEAR
    if _is_chinese(sentence):
        is_work = explained[index]
        return leaves_in_chinese(
            sentence, answer, is_far=is_far or is_work, is_first=index <= 1 and not is_work, is_work=is_work
        )
    return leaves_in_english(sentence, answer, is_rest=index == 0, is_far=is_far, is_first=index == 1)
