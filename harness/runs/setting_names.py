"""What each setting of a run is called in tables and messages, and which settings are checksums or change no score.

A setting's path leads from a benchmark's record to a value. `identity`, `plan` and `settings` hold different fields, so
their names are left out: `sampling.max_tokens`, `concurrency`.
"""

from __future__ import annotations

CHECKSUMS = frozenset(
    ("prompt_digest", "dataset_digest", "questions_digest", "questions_made.rows_digest",
     "questions_made.dataset_digest", "outputs.digest")
)  # fmt: skip
"""Paths of digests, each of which follows from what it was made of."""

_WITHOUT_EFFECT = ("api_key_env", "budget_tokens", "budget_usd", "prices", "without_card", "publish_questions")
"""Settings of which no value may change the replies or their grades, and fields of such settings."""


def in_words(path: str) -> str:
    """The name of a setting for people: its path, and of a sampling value only the value's own name."""
    return path.removeprefix("sampling.").removeprefix("neutral.")


def may_move_scores(path: str) -> bool:
    """Whether another value of the setting may change a score."""
    return path.partition(".")[0] not in _WITHOUT_EFFECT
