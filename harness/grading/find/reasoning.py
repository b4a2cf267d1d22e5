"""Where the reasoning ends and the answer begins, for servers that leave both in one text.

The final part is what follows the last closed reasoning block; only the final part is searched for an answer. If a
block is opened and never closed, the model was still thinking when it ended, and there is no final part.
"""

from __future__ import annotations

import re
from itertools import groupby
from operator import itemgetter

_CLOSERS = ("</think>", "</thinking>", "</thought>", "</reasoning>", "</seed:think>", "[/THINK]", "◁/think▷")
_OPENERS = ("<think>", "<thinking>", "<thought>", "<reasoning>", "<seed:think>", "[THINK]", "◁think▷")
"""`_CLOSERS`, `_OPENERS`: marks of models around their reasoning."""

_CLOSERS_BY_SIGN, _OPENERS_BY_SIGN = (
    [(sign, tuple(same_sign)) for sign, same_sign in groupby(marks, key=itemgetter(0))]
    for marks in (_CLOSERS, _OPENERS)
)
"""Pairs (first character, marks that begin with it): a text without the character is not searched for the marks."""

_END_OF_THOUGHT = "<|end_of_thought|>"
_BEGIN_OF_THOUGHT = "<|begin_of_thought|>"
_CHANNEL = "<|channel|>"
_FINAL = "<|channel|>final<|message|>"
_HARMONY_END = re.compile(r"<\|(?:end|return|start|call)\|>")
"""The end of a message of OpenAI's harmony format."""


def final_part(text: str) -> tuple[int, int] | None:
    """Return (start, end) of the text behind the reasoning, in characters; None if the reasoning never ended.

    Each search ends at the closing mark that was found last, so that a long text is not scanned again and again.
    """
    start = 0
    # Closing marks alone count: many chat templates put the opening mark into the prompt.
    for sign, closers in _CLOSERS_BY_SIGN:
        if text.rfind(sign, start) >= 0:
            for closer in closers:
                closing = text.rfind(closer, start)
                if closing >= 0:
                    start = closing + len(closer)
    if text.rfind("|", start) >= 0:
        closing = text.rfind(_END_OF_THOUGHT, start)
        if closing >= 0:
            start = closing + len(_END_OF_THOUGHT)
        if text.rfind(_CHANNEL, start) >= 0:
            return _harmony(text, start)
        if text.rfind(_BEGIN_OF_THOUGHT, start) >= 0:
            return None
    for sign, openers in _OPENERS_BY_SIGN:
        if text.rfind(sign, start) >= 0 and any(text.rfind(opener, start) >= 0 for opener in openers):
            return None
    return start, len(text)


def _harmony(text: str, start: int) -> tuple[int, int] | None:
    """Return (start, end) of the last message in the channel "final" of OpenAI's harmony format; None without one."""
    final = text.rfind(_FINAL, start)
    if final < 0:
        return None
    begin = final + len(_FINAL)
    stop = _HARMONY_END.search(text, begin)
    return begin, stop.start() if stop else len(text)
