"""One published number and its source, whatever file it was read from."""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

Settings = dict[str, str | int | float | bool | list[int | float]]
"""Name → value. A list: the score is the mean over runs that have one of these values each."""

_HUBS = ("github.com", "raw.githubusercontent.com", "huggingface.co")
"""Hosts whose addresses begin with the owner and the name of a repository."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """The source of published scores.

    url: empty where the source has none. engine: the engine that served the model.
    """

    title: str
    url: str
    engine: str = ""
    note: str = ""

    @property
    def named(self) -> str:
        """Title and address in one text."""
        return f"{self.title}, {self.url}" if self.url else self.title

    @property
    def repository(self) -> str:
        """A name short enough for a table's cell.

        It is the repository's name for an address on GitHub or the Hugging Face hub, the host for any other address,
        and the title of a source without an address.
        """
        parts = urlsplit(self.url)
        names = [name for name in parts.path.split("/") if name and name not in ("datasets", "spaces")]
        if parts.netloc in _HUBS and len(names) > 1:
            return names[1]
        return parts.netloc or self.title


@dataclass(frozen=True, kw_only=True)
class PublishedScore:
    """One reported number. value: a fraction. metric: "pass@1" (also what papers call avg@n, and a mean of points),
    "pass@k", "maj@k", "F1".

    samples: number for each question. unit: value of the last printed digit, a fraction; 0 where the source prints all
    digits. previous: the score of the earlier state of the art that the source prints beside this one, as printed, in
    %. training_samples: of the model, as printed. run_deviation: standard deviation of one run's accuracy over the
    `samples` runs. standard_error: a fraction, of whatever error the source states. Few runs estimate the deviation
    badly, and sources mean different errors: so both only show whether `samples` can be true. mean_tokens: of a reply.
    by: "authors" of this model, or "others" who measured it; a source may be both, each of other models. quoted: the
    source quotes somebody else for this number; `by` is then said of the number that it quotes. settings: of the file,
    overridden by those of the row. stated: whether the source states the settings of this very number; False: they are
    a guess, taken from elsewhere in the source. A field that is None is not stated.
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
    previous: str = ""
    training_samples: str = ""
    by: Literal["authors", "others"] = "others"
    quoted: bool = False
    stated: bool = True
    note: str = ""
    settings: Settings
    source: Source

    @property
    def printed(self) -> str:
        """The number in %, with the digits that the source printed: `72.60`."""
        return f"{100 * self.value:.{decimals(100 * self.unit)}f}" if self.unit else f"{100 * self.value:g}"

    @property
    def improvement(self) -> str:
        """This score minus the earlier state of the art, in points and signed: `+50.6`; empty without such a score."""
        if not self.previous:
            return ""
        return f"{decimal.Decimal(self.printed) - decimal.Decimal(self.previous):+f}"

    @property
    def states_settings(self) -> bool:
        """Whether the source states settings for this very number: not none, and not a guess."""
        return bool(self.settings) and self.stated

    @property
    def averaged(self) -> list[str]:
        """Names of the settings over whose values the score is a mean; empty for the score of one run."""
        return [name for name, value in self.settings.items() if isinstance(value, list)]

    @property
    def kind(self) -> str:
        """The kind of the metric: "pass", "maj" or "F1"."""
        return self.metric.partition("@")[0]

    @property
    def k(self) -> int:
        """The k of pass@k or maj@k; else 1."""
        return int(self.metric.partition("@")[2] or 1)


def last_digit(number: int | float | str) -> float:
    """The value of a 1 in the last digit: 1 for 56, 0.1 for 56.0, 0.01 for 55.83 and for the text 72.60."""
    text = number if isinstance(number, str) else repr(number)
    return 10.0 ** int(decimal.Decimal(text).as_tuple().exponent)


def decimals(unit: float) -> int:
    """Digits behind the point of a number whose last digit has this unit: 0 for 1, 2 for 0.01."""
    return max(0, round(-math.log10(unit)))
