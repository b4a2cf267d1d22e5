r"""What stands behind an answer: "The answer is 12." states 12 only if nothing behind it corrects it or doubts it.

Behind an answer may stand nothing, or sentences that cannot correct it. Each sentence is looked at by its subject:

    the answer (this, it, the result, above)    what is said of a right answer: "this is because …", or else no denial
    the writer (I, let me)                      what leaves the answer: "I hope …", "let me verify", or else no denial
    an interjection (wait, hmm, sorry, no)      never
    anything else in English                    no words of correction, and no other value in place of the answer
    in Chinese                                  closings, reasons, checks, work and confirmations, by their first words;
                                                no other sentence

If a sentence is none of these, the answer is open, unless the last sentence states the same answer again. Amid a long
text (`N_NEAR`), an English sentence needs only to have no words of correction.
"""

from __future__ import annotations

import re

from harness.grading.find.behind_chinese import closes_in_chinese, leaves_in_chinese, turns_in_chinese
from harness.grading.find.behind_english import LABEL, MARKS, leaves_in_english, repeats_answer
from harness.grading.find.refusals import is_repaired, is_taken_back
from harness.grading.find.repeated import is_letter, letter_in

MAX_BEHIND_CHARS = 6_000
"""The text behind an answer is looked at this far, in characters; so is the end of a longer text."""

N_NEAR = 3
"""Number of sentences at each end of a text behind an answer that are looked at most strictly.

Between them a whole solution may stand, whose sentences speak of many things.
"""

_STOP = re.compile(r"[.!?]+(?=[\s\"'”*)$\]}]|\\[)\]]|\Z)|\n+|[。！？]+")
_CLOSES_FORMULA = re.compile(r"(?:[}$*_` \t)]|\\[)\]])*")
_CODE = re.compile(r"(?s)```.*?(?:```|\Z)|\[asy\].*?(?:\[/asy\]|\Z)")
_TAGS = re.compile(
    r"\\(?:boxed|fbox|framebox)\s*\{[\s.?_…]*\}|<\|[^|<>\n]{1,40}\|>\w*|</?\w+>|\\(?:end|begin)\s*\{[a-z]+\*?\}"
    r"|\\[,;!\])]"
)
_HAN = re.compile(r"[\u3400-\u9fff]")
_LATIN = re.compile(r"[A-Za-z]")

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

_BEHIND_LETTER = re.compile(r"[)）\]】}$* \t]*(?P<mark>[.．、:：]?)(?=[^\n])")


def leaves_standing(text: str, end: int, hi: int, answer: str) -> bool:
    """Whether text[end:hi], which stands behind an answer, leaves it standing."""
    if not text[end:hi].strip(MARKS + "\n。"):
        return True  # most answers end the reply
    # The text of an option, behind its letter and a dot, belongs to the answer's own sentence.
    answer = letter_in(answer) or answer
    closing = (_BEHIND_LETTER if is_letter(answer) else _CLOSES_FORMULA).match(text, end, hi)
    start = end if closing is None else closing.end()
    if sum(script.search(text, start, hi) is not None for script in _SCRIPTS) > _MAX_SCRIPTS:
        return True
    sentences = _sentences(text, start, hi)
    if closing is not None and closing.re is _BEHIND_LETTER:
        sentences[0] = f"{closing['mark']}{sentences[0]}"
    labels = (index for index, sentence in enumerate(sentences) if (label := LABEL.match(sentence)) and label["remark"])
    remark = next(labels, len(sentences))
    open_ones = [
        index
        for index, sentence in enumerate(sentences)
        if not _is_harmless(
            sentence,
            answer,
            is_rest=index == 0,
            in_remark=index > remark,
            is_far=N_NEAR <= index < len(sentences) - N_NEAR,
        )
    ]
    if not open_ones and not is_repaired(text, end, hi) and not is_taken_back(text, end, hi):
        return True
    last = next((sentence for sentence in reversed(sentences) if not closes_in_chinese(sentence)), "")
    last_index = len(sentences) - 1 - sentences[::-1].index(last) if last else -1
    return (
        last_index > 0
        and last_index >= max(open_ones, default=0)
        and repeats_answer(last, answer)
        and not turns_in_chinese(last)
    )


def _sentences(text: str, end: int, hi: int) -> list[str]:
    """Return the sentences of text[end:hi] without marks; the first is the rest of the answer's own sentence."""
    parts = [text[end:hi]]
    if hi - end > 2 * MAX_BEHIND_CHARS:
        parts = [text[end : end + MAX_BEHIND_CHARS], text[hi - MAX_BEHIND_CHARS : hi]]
    sentences = []
    for part in parts:
        plain, begin = _TAGS.sub(" ", _CODE.sub("\n", part)), 0
        for stop in _STOP.finditer(plain):
            asks = "?" if "?" in stop.group() or "？" in stop.group() else ""
            sentences.append(plain[begin : stop.start()] + asks)
            begin = stop.end()
        sentences.append(plain[begin:])
    return [sentences[0].strip(" \t*_`$"), *filter(None, (sentence.strip(MARKS) for sentence in sentences[1:]))]


def _is_harmless(sentence: str, answer: str, *, is_rest: bool, in_remark: bool = False, is_far: bool = False) -> bool:
    """Whether one sentence behind an answer cannot correct it.

    is_rest: it is the rest of the answer's own sentence. in_remark: a heading "Note:" stands before it. is_far: it is
    neither one of the first sentences behind the answer nor one of the last of the text (`N_NEAR`).
    """
    n_han = len(_HAN.findall(sentence))
    if n_han and n_han >= len(_LATIN.findall(sentence)):
        return leaves_in_chinese(sentence, answer, is_rest=is_rest)
    return leaves_in_english(sentence, answer, is_rest=is_rest, in_remark=in_remark, is_far=is_far)
