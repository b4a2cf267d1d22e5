"""One reported number and where it stands, whatever file it was read from."""

from __future__ import annotations

import decimal
from dataclasses import dataclass
from typing import Literal

Settings = dict[str, str | int | float | bool]


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where the scores stand. url: empty where the source has none. by: "authors" of the model, or "others" who
    measured it; engine: what served it."""

    title: str
    url: str
    by: Literal["authors", "others"]
    engine: str = ""
    note: str = ""

    @property
    def named(self) -> str:
        """Title and address."""
        return f"{self.title}, {self.url}" if self.url else self.title


@dataclass(frozen=True, kw_only=True)
class PublishedScore:
    """One reported number. value: a fraction. metric: "pass@1" (also what papers call avg@n), "pass@k", "maj@k".

    samples: of each question, None where the source does not say. unit: of the last digit that the source prints, a
    fraction; 0 where it prints all. run_deviation: deviation of one run's accuracy over the `samples` runs, where the
    source gives it; few runs hardly know it, so no test uses it. standard_error: a fraction, as the source gives it; of
    what it is the error differs from source to source, so no test uses it either. mean_tokens: of a reply. quoted: the
    source quotes somebody else for it. settings: the file's, overridden by the row's. n_questions: None where the
    source does not say.
    """

    model: str
    benchmark: str
    metric: str
    value: float
    n_questions: int | None
    samples: int | None
    unit: float = 0.001
    run_deviation: float | None
    standard_error: float | None = None
    mean_tokens: float | None = None
    quoted: bool = False
    note: str = ""
    settings: Settings
    source: Source

    @property
    def kind(self) -> str:
        """ "pass" or "maj"."""
        return self.metric.partition("@")[0]

    @property
    def k(self) -> int:
        """Samples that the metric draws of each question."""
        return int(self.metric.partition("@")[2])


def last_digit(number: int | float) -> float:
    """Unit of the last digit: 1 for 56, 0.1 for 56.0, 0.01 for 55.83."""
    return 10.0 ** int(decimal.Decimal(repr(number)).as_tuple().exponent)
