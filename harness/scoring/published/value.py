"""One published number and its source, whatever file it was read from."""

from __future__ import annotations

import decimal
from dataclasses import dataclass
from typing import Literal

Settings = dict[str, str | int | float | bool]


@dataclass(frozen=True, kw_only=True)
class Source:
    """The source of published scores.

    url: empty where the source has none. by: "authors" of the model, or "others" who measured it. engine: the engine
    that served the model.
    """

    title: str
    url: str
    by: Literal["authors", "others"]
    engine: str = ""
    note: str = ""

    @property
    def named(self) -> str:
        """Title and address in one text."""
        return f"{self.title}, {self.url}" if self.url else self.title


@dataclass(frozen=True, kw_only=True)
class PublishedScore:
    """One reported number. value: a fraction. metric: "pass@1" (also what papers call avg@n), "pass@k", "maj@k".

    samples: of each question. unit: of the last printed digit, a fraction; 0 where the source prints all digits.
    run_deviation: standard deviation of one run's accuracy over the `samples` runs; few runs estimate it badly, so no
    test uses it. standard_error: a fraction; sources differ in what it is the error of, so no test uses it either.
    mean_tokens: of a reply. quoted: the source quotes somebody else for this number. settings: the file's, overridden
    by the row's. stated: the source states the settings of this very number; False: they are a guess,
    taken from elsewhere in it. None: the source does not say.
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
    stated: bool = True
    note: str = ""
    settings: Settings
    source: Source

    @property
    def kind(self) -> str:
        """The kind of the metric: "pass" or "maj"."""
        return self.metric.partition("@")[0]

    @property
    def k(self) -> int:
        """The k of pass@k or maj@k."""
        return int(self.metric.partition("@")[2])


def last_digit(number: int | float) -> float:
    """Unit of the last digit: 1 for 56, 0.1 for 56.0, 0.01 for 55.83."""
    return 10.0 ** int(decimal.Decimal(repr(number)).as_tuple().exponent)
