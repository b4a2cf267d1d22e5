"""A prompt, as a mapping, and a source with its own address scheme."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

PROMPT = {
    "template": "{question}\nPut the word, and nothing else, within \\boxed{}.",
    "used_by": "the example package",
}


def rows(address: str, split: str | None) -> Iterator[dict[str, object]]:
    """Return the rows of `palindromes://lengths?up_to=5`: a question for each length from 3. There are no splits."""
    if split is not None:
        raise ValueError(f"palindromes have no split {split!r}")
    up_to = int(parse_qs(urlsplit(address).query).get("up_to", ["5"])[0])
    for length in range(3, up_to + 1):
        yield {"id": f"length-{length}", "question": f"Write a palindrome of {length} letters.", "answer": str(length)}
