"""What each setting of a run is called in tables and messages, and who decides it if the run's record does not say so.

A setting's path leads from a benchmark's record to a value. `identity`, `plan` and `settings` hold different fields, so
their names are left out: `sampling.max_tokens`, `concurrency`.
"""

from __future__ import annotations

from collections.abc import Mapping

CHECKSUM = "computed: a checksum"
"""Who decides a digest: nobody, it follows from what it was made of."""

SERVER = "server"
"""Who decides a value that the server states."""

DATA = "data"
"""Who decides a value that the file of questions holds."""

OPTIONS = "options"
"""Who decides a value that the user gave."""

DECIDED_BY: Mapping[str, str] = {
    **dict.fromkeys(
        ("prompt_digest", "dataset_digest", "questions_digest",
         "questions_made.rows_digest", "questions_made.dataset_digest", "outputs.digest"),
        CHECKSUM,
    ),
    **dict.fromkeys(("fitted_max_tokens", "prefill_marks", "never_succeeds", "filled_by_server"), SERVER),
    **dict.fromkeys(("questions_made.n_all", "questions_made.origin", "questions_made.notes"), DATA),
    **dict.fromkeys(
        ("api_key_env", "card", "data", "without_card", "outputs.read"),
        OPTIONS,
    ),
    "publish_questions": "card",
    "neutral": "harness: keeps the server's own default out",
}  # fmt: skip
"""Path of a setting, or of the field that holds it → who decides it in every run."""

_WITHOUT_EFFECT = ("api_key_env", "budget_tokens", "budget_usd", "prices", "without_card", "publish_questions")
"""Settings of which no value may change the replies or their grades, and fields of such settings."""


def in_words(path: str) -> str:
    """The name of a setting for people: its path, and of a sampling value only the value's own name."""
    return path.removeprefix("sampling.").removeprefix("neutral.")


def always_decided_by(path: str) -> str:
    """Who decides a setting in every run; empty if the run's record says who did."""
    return next((who for field, who in DECIDED_BY.items() if f"{path}.".startswith(f"{field}.")), "")


def may_move_scores(path: str) -> bool:
    """Whether another value of the setting may change a score."""
    return path.partition(".")[0] not in _WITHOUT_EFFECT
