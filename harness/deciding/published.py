"""Scores reported by papers, repositories and other tools, with their sources.

`results/published/` contains the shipped scores, one YAML file per source. Start with `load_published` and `matching`.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import pydantic

from harness.core import files, yaml_file
from harness.core.errors import UsageError
from harness.core.sanitize import visible
from harness.core.validation import validated
from harness.core.yaml_mapping import HTTPS, Part, TextForm
from harness.scoring.call_measures import SCHEMA_ACCURACY

Settings = dict[str, str | int | float | bool | list[int | float]]
"""Name → value. A list means that the score is the mean over runs with one of these values each."""

_HUBS = ("github.com", "raw.githubusercontent.com", "huggingface.co")
"""Hosts whose URL paths begin with the owner and name of a repository."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """The source of published scores."""

    title: str
    """The source's title."""
    url: str
    """The source's URL; empty if it has none."""
    engine: str = ""
    """Engine that served the model."""
    note: str = ""
    """A note about the source."""

    @property
    def citation(self) -> str:
        """Title and address as one text."""
        return f"{self.title}, {self.url}" if self.url else self.title

    @property
    def repository(self) -> str:
        """A name short enough for a table's cell.

        For an address on GitHub or the Hugging Face Hub it is the repository's name, for any other address the host,
        and for a source without an address the title.
        """
        parts = urlsplit(self.url)
        names = [name for name in parts.path.split("/") if name and name not in ("datasets", "spaces")]
        if parts.netloc in _HUBS and len(names) > 1:
            return names[1]
        return parts.netloc or self.title


@dataclass(frozen=True, kw_only=True)
class PublishedScore:
    """A published number. Fields that the source does not report are None."""

    model: str
    """Name of the model."""
    benchmark: str
    """Name of the benchmark."""
    metric: str
    """Name of the metric: "pass@1" (including what papers call avg@n, and means of points), "pass@k", "maj@k", "F1" or
    "schema accuracy".
    """
    value: float
    """The published number, as a fraction."""
    n_questions: int | None
    """Number of questions."""
    samples: int | None
    """Number of samples per question."""
    unit: float = 0.001
    """Place value of the last printed digit, as a fraction; 0 if the source prints all digits."""
    run_deviation: float | None
    """Standard deviation of a single run's accuracy across the `samples` runs, as a fraction. It is based on too few
    runs to be precise, so it is used only to check whether `samples` is plausible.
    """
    standard_error: float | None = None
    """Error reported by the source, as a fraction. Sources report different kinds of error, so it is used only to check
    whether `samples` is plausible.
    """
    mean_tokens: float | None = None
    """Mean number of tokens per reply."""
    previous: str = ""
    """Previous state-of-the-art score that the source lists next to this score (in %, as printed)."""
    training_samples: str = ""
    """Number of samples that the model was trained on, as stated in the source."""
    by: Literal["authors", "others"] = "others"
    """Who measured the number: "authors" (the model's authors) or "others". A source can contain numbers from both."""
    quoted: bool = False
    """Whether the source quotes this number from another source; `by` then refers to the quoted source."""
    stated: bool = True
    """Whether the source reports the settings for this number; if false, they were inferred from elsewhere in the
    source.
    """
    note: str = ""
    """A note about the number."""
    server: str = ""
    """Provider or engine that served the model; empty for the authors' own service, or if unknown."""
    replies: int | None = None
    """Number of replies (with calls) that the schema accuracy is based on."""
    settings: Settings
    """The file's settings, overridden by the row's settings."""
    source: Source
    """Source that published the number."""

    @property
    def printed(self) -> str:
        """The number in %, with the digits that the source printed: `72.60`."""
        return f"{100 * self.value:.{decimals(100 * self.unit)}f}" if self.unit else f"{100 * self.value:g}"

    @property
    def measure(self) -> str:
        """The metric, and the server if one is named: `schema accuracy on SGLang`."""
        return f"{self.metric} on {self.server}" if self.server else self.metric

    @property
    def improvement(self) -> str:
        """This score minus the previous state of the art, in points and signed: `+50.6`; empty if there is none."""
        if not self.previous:
            return ""
        return f"{decimal.Decimal(self.printed) - decimal.Decimal(self.previous):+f}"

    @property
    def states_settings(self) -> bool:
        """Whether the source reports settings for this particular number (they exist and are not inferred)."""
        return bool(self.settings) and self.stated

    @property
    def averaged_over(self) -> list[str]:
        """Names of the settings that the score is averaged over; empty for the score of one run."""
        return [name for name, value in self.settings.items() if isinstance(value, list)]

    @property
    def kind(self) -> str:
        """The kind of the metric: "pass", "maj", "F1" or "schema accuracy"."""
        return self.metric.partition("@")[0]

    @property
    def k(self) -> int:
        """The k of pass@k or maj@k; otherwise 1."""
        return int(self.metric.partition("@")[2] or 1)


def last_digit(number: int | float | str) -> float:
    """The value of a 1 in the last digit: 1 for 56, 0.1 for 56.0, 0.01 for 55.83 and for the text 72.60."""
    text = number if isinstance(number, str) else repr(number)
    return 10.0 ** int(decimal.Decimal(text).as_tuple().exponent)


def decimals(unit: float) -> int:
    """Number of decimal places of a number whose last digit has this unit: 0 for 1, 2 for 0.01."""
    return max(0, round(-math.log10(unit)))


SUFFIXES = (".yaml", ".yml")
"""Suffixes of the files of published scores."""

MAX_FILES = 10_000
"""Largest number of files in a folder of published scores, subfolders included; a folder with more is rejected because
it must be some other folder.
"""


def published_folder() -> Path:
    """The scores shipped with the project: in the checkout, or inside the installed package."""
    return files.shipped_folder("published", "results/published")


def load_published(path: Path | None = None, models: Iterable[str] | None = None) -> list[PublishedScore]:
    """The scores of a file, or of all score files in a folder tree, sorted by name.

    path: None = the shipped folder. models: names of the models whose scores are returned; None = all. Raises
    `UsageError` that names the file and the field.
    """
    names = None if models is None else frozenset(short_name(model) for model in models)
    return list(_shipped_scores(published_folder(), names)) if path is None else _scores_in(path, names)


def matching(scores: Iterable[PublishedScore], model: str, benchmark: str) -> list[PublishedScore]:
    """The scores of this benchmark and model; `org/name`, `name` and a path that ends in `name` are the same model."""
    name = short_name(model)
    return [score for score in scores if score.benchmark == benchmark and short_name(score.model) == name]


def short_name(model: str) -> str:
    """The part of a model's name used for comparison: the part after the last slash, in lower case."""
    return model.rstrip("/").rsplit("/", 1)[-1].casefold()


@lru_cache(maxsize=64)
def _shipped_scores(folder: Path, names: frozenset[str] | None) -> tuple[PublishedScore, ...]:
    """The scores of these models in the shipped folder; None: all. They are read once per process for all runs of a
    sweep or a report, because parsing the YAML takes 10 ms, or 100 ms for all models.
    """
    return tuple(_scores_in(folder, names))


def _scores_in(path: Path, names: frozenset[str] | None) -> list[PublishedScore]:
    """The scores of these models in a file or a folder tree. names: as `short_name` returns them; None: all models."""
    # `read` only skips lines that contain none of the names, even within a longer name; here the names must be equal.
    loaded = [score for file in _files(path) for score in read(file, names)]
    return [score for score in loaded if names is None or short_name(score.model) in names]


def _files(path: Path) -> list[Path]:
    """The published-score files at this path. Raises `UsageError`."""
    if path.is_file() and path.suffix in SUFFIXES:
        return [path]
    named = (file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())
    # The list is limited before it is sorted, because the folder may be a whole disk.
    paths = sorted(islice(named, MAX_FILES + 1))
    if len(paths) > MAX_FILES:
        raise UsageError(f"{visible(str(path), 200)} contains more than {MAX_FILES:,} files; choose a folder inside it")
    if not paths:
        what = "is a different kind of file" if path.exists() else "does not exist"
        if path.is_dir():
            what = "contains none"
        raise UsageError(
            f"expected a file of published scores (.yaml) or a folder of such files, but {visible(str(path), 200)} "
            f"{what}. For an example, see docs/deciding.md"
        )
    return paths


MAX_FILE_BYTES = 1024 * 1024
"""Maximum file size in bytes; a file of published scores is a short table."""


class _SourceFields(Part):
    """The source of a file's rows. by: default for rows that do not set `by`. checked: the day on which all rows were
    last compared with the source; None: never.
    """

    title: str
    url: Annotated[str, HTTPS]
    by: Literal["authors", "others"]
    engine: str = ""
    note: str = ""
    checked: datetime.date | None = None


_PERCENT = r"100(\.0+)?|[0-9]{1,2}(\.[0-9]+)?"
"""A percentage from 0 to 100, as text."""

Percent = Annotated[str, TextForm(_PERCENT, "a number from 0 to 100, such as 61.2")]
"""A percentage as its source prints it. Text preserves trailing zeros."""


def _percentage(value: object) -> int | float | str:
    """The percentage of a row, a number or a text. Raises `ValueError`."""
    if isinstance(value, str) and re.fullmatch(_PERCENT, value):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 100:
        return value
    raise ValueError("expected a percentage from 0 to 100, such as 55.0")


_METRICS = f"pass@K, maj@K, F1 or {SCHEMA_ACCURACY}, such as pass@1"


class _ScoreRow(Part):
    """One row. previous: the previous state-of-the-art score listed next to it. standard_error: in points, as printed.
    by: who measured this number; None: the default of the file's source. replies: for a schema accuracy, the number of
    replies with calls.
    """

    model: str
    benchmark: str
    metric: Annotated[str, TextForm(rf"(pass|maj)@[1-9][0-9]*|F1|{SCHEMA_ACCURACY}", _METRICS)]
    percent: Annotated[int | float | str, pydantic.PlainValidator(_percentage)]
    previous: Percent | Literal[""] = ""
    training_samples: str = pydantic.Field(default="", max_length=20)
    standard_error: float | None = pydantic.Field(default=None, ge=0, le=100)
    samples: int | None = pydantic.Field(default=None, ge=1)
    run_deviation: float | None = pydantic.Field(default=None, ge=0, le=100)
    mean_tokens: float | None = pydantic.Field(default=None, ge=0)
    by: Literal["authors", "others"] | None = None
    quoted: bool = False
    stated: bool = True
    note: str = ""
    server: str = pydantic.Field(default="", max_length=40)
    replies: int | None = pydantic.Field(default=None, ge=1)
    settings: Settings = pydantic.Field(default_factory=dict)


class _ScoreFile(Part):
    schema_: Literal[1] = pydantic.Field(alias="schema")
    source: _SourceFields
    settings: Settings = pydantic.Field(default_factory=dict)
    questions: dict[str, int | None]
    scores: list[_ScoreRow] | None = None

    @pydantic.model_validator(mode="after")
    def _every_benchmark_has_its_size(self) -> _ScoreFile:
        for row in self.scores or ():
            if row.benchmark not in self.questions:
                raise ValueError(
                    f"the benchmark {row.benchmark} is missing from `questions`; add its number of questions"
                )
        return self


_ROW = re.compile(r"\s*- \{.*\}\s*$")
"""A line that contains a whole row of the table."""


def read(path: Path, names: Collection[str] | None) -> list[PublishedScore]:
    """The scores of the file. Raises `UsageError` that names the file and the field.

    names: model names in lower case; None: all scores. A single-line row without any of these names is skipped before
    YAML parsing, because files are long and a run has only one model.
    """

    def may_match(line: str) -> bool:
        return names is None or not _ROW.match(line) or any(name in line.casefold() for name in names)

    content = yaml_file.read_mapping(path, "published scores", MAX_FILE_BYTES, may_match)
    file = validated(_ScoreFile, content, str(path))
    source = Source(**file.source.model_dump(exclude={"by", "checked"}))
    return [
        PublishedScore(
            **row.model_dump(exclude={"percent", "run_deviation", "standard_error", "settings", "by"}),
            value=float(f"{row.percent}e-2"),  # 0.781, where a division of 78.1 gives 0.7809999999999999
            n_questions=file.questions[row.benchmark],
            unit=last_digit(row.percent) / 100,
            run_deviation=None if row.run_deviation is None else row.run_deviation / 100,
            standard_error=None if row.standard_error is None else row.standard_error / 100,
            settings={**file.settings, **row.settings},
            source=source,
            by=row.by or file.source.by,
        )
        for row in file.scores or ()
    ]
