"""Prompts of random words for load curves: of one length, and different from the first words on, for prefix caches.

Each hides a code, which the reply must name, so that a server that drops part of a prompt or a reply is found out.
"""

from __future__ import annotations

import random

from harness.benchmarks.card import RandomSource
from harness.benchmarks.sources.tables import Row, Rows

_TEXT = """
time year people way day man thing woman life child world school state family student group country problem hand part
place case week company system program question work number night point home water room mother area money story fact
month lot right study book eye job word business issue side kind head house service friend father power hour game line
end member law car city name team minute idea body back parent face level office door
"""
WORDS = _TEXT.split()
"""English words that usual tokenizers hold as one token after a blank."""

FRAME_WORDS = 20
"""Words of the code and the question, of which the number's digits count as three."""


def read(source: RandomSource) -> Rows:
    """The prompts, in columns id, question, answer (a list with the code)."""
    rows = [_row(source, index) for index in range(source.size)]
    return Rows(rows, f"random words (seed {source.seed})")


def _row(source: RandomSource, index: int) -> Row:
    """A prompt with its code. Its generator has a seed of its own, so that `size` changes no other prompt."""
    draw = random.Random(f"{source.seed}-{source.words}-{index}")  # noqa: S311 - no secret
    words, code = draw.choices(WORDS, k=max(1, source.words - FRAME_WORDS)), str(draw.randrange(10**6, 10**7))
    words.insert(draw.randrange(len(words)), f"(the code is {code})")
    name = f"{source.seed}-{index}"
    question = f"{' '.join(words)}\n\nWhat is the code in this text? Begin with the code."
    return Row(f"random words {name}", {"id": name, "question": question, "answer": [code]})
