"""Files of published scores in our own form: `results/published/*.yaml`, one file per source."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Literal

import pydantic

from harness.core import yaml_file
from harness.core.part import HTTPS, Part, TextForm
from harness.core.validation import validated
from harness.scoring.published.value import PublishedScore, Settings, Source, last_digit

MAX_FILE_BYTES = 1024 * 1024
"""Largest file that is read, in bytes; published scores are a short table."""


class _SourceFields(Part):
    """The source of a file's rows. by: of the rows that do not say it themselves. checked: the day on which every row
    was last compared with it; None: never.
    """

    title: str
    url: Annotated[str, HTTPS]
    by: Literal["authors", "others"]
    engine: str = ""
    note: str = ""
    checked: datetime.date | None = None


_PERCENT = r"100(\.0+)?|[0-9]{1,2}(\.[0-9]+)?"
"""A percentage as a text, from 0 to 100."""

Percent = Annotated[str, TextForm(_PERCENT, "a number from 0 to 100, such as 61.2")]
"""A percentage as its source prints it; as a text it keeps the zeros at its end."""


def _percentage(value: object) -> int | float | str:
    """The percentage of a row, a number or a text. Raises `ValueError`."""
    if isinstance(value, str) and re.fullmatch(_PERCENT, value):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 100:
        return value
    raise ValueError("expected per cent from 0 to 100, such as 55.0")


class _ScoreRow(Part):
    """One row. previous: the score of the earlier state of the art beside it. standard_error: in points, as printed.
    by: whether the model's authors state this number; None: as the file says of its source.
    """

    model: str
    benchmark: str
    metric: Annotated[str, TextForm(r"(pass|maj)@[1-9][0-9]*|F1", "pass@K, maj@K or F1, such as pass@1")]
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
                    f"the benchmark {row.benchmark} is missing in `questions`; give its number of questions"
                )
        return self


_ROW = re.compile(r"\s*- \{.*\}\s*$")
"""A line that holds a whole row of the table."""


def read(path: Path, names: Collection[str] | None) -> list[PublishedScore]:
    """The scores of the file. Raises `UsageError` that names the file and the field.

    names: model names in lower case; None: all scores. A row that stands on one line without any of these names is
    skipped before YAML parses it, because files are long and a run has one model.
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
