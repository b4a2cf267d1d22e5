"""Numbers with their nouns, for messages."""

from __future__ import annotations


def count_noun(n: int, noun: str, plural: str = "") -> str:
    """A number with its noun: `1 token`, `2,000 tokens`. plural: where it is not the noun with an s."""
    return f"{n:,} {noun if n == 1 else plural or f'{noun}s'}"


def are(n: int) -> str:
    """The verb after a number: `is` after 1, else `are`."""
    return "is" if n == 1 else "are"
