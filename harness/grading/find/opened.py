"""Which sentence behind an answer leaves it open or states another value, so that a verdict can quote it."""

from __future__ import annotations

import re

from harness.grading.find.behind import values_behind

_STOP = re.compile(r"(?<![.!?])[.!?]+(?=\s)|[。！？]+|\n+")

MAX_SENTENCES = 40
"""Largest number of sentences that are tried one by one; a longer text is quoted from there on."""


def opening_sentence(text: str, end: int, hi: int, answer: str) -> str:
    """Return the sentence of text[end:hi], the text behind an answer, with which the answer is first left open.

    The text must leave it open (`values_behind`).
    """
    begin = end
    for n_tried, stop in enumerate(_STOP.finditer(text, end, hi)):
        if n_tried == MAX_SENTENCES:
            break
        # The text up to a sentence, since sentences are judged by those before them.
        if text[begin : stop.end()].strip() and values_behind(text, end, stop.end(), answer) is None:
            return text[begin : stop.end()].strip()
        begin = stop.end()
    return text[begin:hi].strip()


def stating_sentence(text: str, end: int, hi: int, values: tuple[str, ...]) -> str:
    """Return the last sentence of text[end:hi], the text behind an answer, that holds one of `values`; empty without
    such a sentence.
    """
    stating, begin = "", end
    for finish in (*(stop.end() for stop in _STOP.finditer(text, end, hi)), hi):
        sentence = text[begin:finish].strip()
        if any(value.strip(" $") in sentence for value in values):
            stating = sentence
        begin = finish
    return stating
