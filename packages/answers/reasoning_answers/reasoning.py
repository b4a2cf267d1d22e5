"""Where the reasoning ends and the answer begins, for servers that leave both in one text.

The final part is what follows the last closed reasoning block; only the final part is searched for an answer. If a
block is opened and never closed, the model was still thinking when the response ended, and there is no final part. A
mark is recognized by its form: a name related to thinking, in brackets: `<mm:think>`, `<|START_THINKING|>`,
`<scratchpad>`. A mark in code, or in a sentence that mentions it, opens and closes nothing: "The tag <think> is not
needed."
"""

from __future__ import annotations

import re

from reasoning_answers.patterns import regex

_STEMS = ("think", "thought", "reason", "reflect", "scratch", "ponder", "deliberat", "monolog", "rationale", "analysis")
"""The stems of names for thinking, in any case. A text without any of them has no mark."""

# Check first for any name in brackets: few of the brackets in a text contain one.
_NAMED = (
    r"(?=[\w:.-]{3,64}+\|?[>▷\]])"
    rf"(?:(?P<name>[\w:.-]{{0,24}}(?:{'|'.join(_STEMS)})[\w:.-]{{0,24}})\|?[>▷]|(?-i:THINK|THINKING|THOUGHT)\])"
)
_MARK = regex(rf"(?i)[`<\[◁](?:(?<=`)(?:``.*?```|[^`\n]+`)|\|?(?P<slash>/?)\|?{_NAMED})", re.DOTALL)
"""A mark that a model puts around its reasoning, with a slash if it closes; or code, in which marks do not count."""

_CLOSER = regex(rf"(?i)[<\[◁]\|?/\|?{_NAMED}")
_ENDS = regex(r"(?i)(?<![a-z])end(?![a-z])")
"""The word of a closing mark that has no slash: `<|END_THINKING|>`."""

_ALWAYS = regex(r"(?i)think|thought|reasoning")
"""A name that marks reasoning anywhere; any other name may be part of the answer, and marks reasoning only at the
start.
"""

_GOES_ON = regex(r"[ \t]+[a-z]|[ \t]*[,.;:!?…)\]\"'’”»]")
"""The words after a mark that a sentence mentions."""

_MAX_BEFORE_CHARS = 80
"""Number of characters before a mark, on its line, that are read."""

_CHANNEL = "<|channel|>"
_FINAL = "<|channel|>final<|message|>"
_HARMONY_END = re.compile(r"<\|(?:end|return|start|call)\|>")
"""The end of a message of OpenAI's harmony format."""


def final_part(text: str, *, is_apart: bool = False) -> tuple[int, int] | None:
    """Return (start, end) of the text after the reasoning, in characters; None if the reasoning never ended.

    is_apart: whether the server sent the reasoning in a separate field, so that the text is the answer.
    """
    if is_apart:
        return 0, len(text)
    start, is_open, spoken_line = 0, False, -1  # start of the line whose sentence last mentioned an opening mark
    passed = False  # whether a part with a name of thinking was passed, since it belongs to the answer
    # Plain text searches, which are faster than a pattern: this runs for each response.
    lowered = text.lower()
    for mark in _MARK.finditer(text) if any(stem in lowered for stem in _STEMS) else ():
        if mark["slash"] is None:
            if is_open and (closers := [*_CLOSER.finditer(mark.group())]):  # the code was never closed
                start, is_open = mark.start() + closers[-1].end(), False
            continue
        closes = mark["slash"] or _ENDS.search(mark["name"] or "")
        if mark["name"] and not is_open and _ALWAYS.search(mark["name"]) is None:
            passed = passed or (not closes and text[start : mark.start()].strip() != "")
            if passed:
                continue
        line = text.rfind("\n", max(start, mark.start() - _MAX_BEFORE_CHARS), mark.start()) + 1
        before = text[max(line, mark.start() - _MAX_BEFORE_CHARS) : mark.start()]
        goes_on = _GOES_ON.match(text, mark.end()) is not None
        if not closes:
            spoken = goes_on and before.strip() != ""
            is_open, spoken_line = is_open or not spoken, line if spoken else spoken_line
        # Only closing marks count: many chat templates put the opening mark into the prompt.
        elif is_open or not (line == spoken_line or (goes_on and _is_spoken(before))):
            start, is_open = mark.end(), False
    if text.rfind(_CHANNEL, start) >= 0:
        return _harmony(text, start)
    return None if is_open else (start, len(text))


def _is_spoken(before: str) -> bool:
    """Whether the words before a mark on its line lead up to it: a word and a space, or an opening quote."""
    words = before.rstrip(" \t")
    last = words[-1:] or "\n"
    return last in "\"'“‘«(*" or (words != before and (last.isalnum() or last in ",;:–—-_"))


def _harmony(text: str, start: int) -> tuple[int, int] | None:
    """Return (start, end) of the last message in the "final" channel of OpenAI's harmony format, or None."""
    final = text.rfind(_FINAL, start)
    if final < 0:
        return None
    begin = final + len(_FINAL)
    stop = _HARMONY_END.search(text, begin)
    return begin, stop.start() if stop else len(text)
