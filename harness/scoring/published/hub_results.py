"""Evaluation results of the Hugging Face hub: `.eval_results/*.yaml` of a model, and the leaderboard of a data set.

Neither form says whether a value is a fraction or a percentage, and both occur. A value above 1 can only be a
percentage. A value of at most 1 may be either (0.9 is 90 % on one board and 0.9 % on another), so it is not read.
Neither form names its metric, so only data sets of shipped cards are read, whose boards hold accuracies. Neither form
has a field for settings: these scores decide nothing alone.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec

from harness.core import codec, yaml_file
from harness.core.errors import UsageError
from harness.core.inert import quoted, visible
from harness.scoring.published.benchmark_name import card_of_task
from harness.scoring.published.value import PublishedScore, Source, last_digit

FOLDER = ".eval_results"
"""Folder of a model's repository that holds its results."""

MAX_FILE_BYTES = 1024 * 1024
"""Largest file of results, in bytes; a larger one is refused."""

MAX_ENTRIES = 1_000
"""Largest number of results of one file; a file with more is refused."""


class _Dataset(msgspec.Struct, frozen=True):
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    task_id: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class _EntrySource(msgspec.Struct, frozen=True):
    url: str | None = None
    name: str | None = None
    user: str | None = None
    org: str | None = None


class _Entry(msgspec.Struct, frozen=True):
    """One result, of the fields that the hub's page on evaluation results describes."""

    dataset: _Dataset
    value: int | float
    source: _EntrySource | None = None
    notes: str | None = None


class _BoardSource(msgspec.Struct, frozen=True):
    url: str | None = None
    name: str | None = None


class _BoardEntry(msgspec.Struct, frozen=True, rename="camel"):
    """One line of a leaderboard. Its other fields are not read."""

    model_id: str
    value: int | float
    verified: bool = False
    source: _BoardSource | None = None
    notes: str | None = None


def read(path: Path) -> tuple[list[PublishedScore], list[str]]:
    """Return (the scores in OWNER/MODEL/.eval_results/NAME.yaml, for each other entry a reason why it is no score).

    The model's name is made of the two folders above, OWNER/MODEL. Raises `UsageError`.
    """
    content = yaml_file.read_list(path, "evaluation results of the hub", MAX_FILE_BYTES)
    if len(content) > MAX_ENTRIES:
        raise UsageError(f"{path} holds more than {MAX_ENTRIES:,} results")
    try:
        entries = msgspec.convert(content, list[_Entry])
    except msgspec.ValidationError as error:
        raise UsageError(f"{path} holds no evaluation results of the hub: {quoted(str(error))}") from error
    repository = path.parent.parent
    model = f"{repository.parent.name}/{repository.name}"

    def score(entry: _Entry) -> PublishedScore:
        """One entry of a model's results on the hub as a published score."""
        source = entry.source or _EntrySource()
        return _score(
            model=model,
            task=entry.dataset.task_id,
            dataset=entry.dataset.id,
            value=entry.value,
            source=Source(
                title=source.name or source.org or source.user or f"{model} on the hub",
                url=_https(source.url),
                note=visible(entry.notes or "", 200),
            ),
        )

    return _sorted_out(entries, score)


def leaderboard(data: bytes, dataset: str, where: str) -> tuple[list[PublishedScore], list[str]]:
    """Return (the scores of a data set's leaderboard, for each other entry a reason why it is no score).

    data: the reply of `/api/datasets/OWNER/NAME/leaderboard`. Raises `UsageError` naming `where`.
    """
    try:
        entries = codec.decode(data, list[_BoardEntry])
    except codec.DecodeError as error:
        raise UsageError(f"{where} is no leaderboard of the hub: {quoted(str(error))}") from error

    def score(entry: _BoardEntry) -> PublishedScore:
        """One entry of a leaderboard as a published score."""
        source = entry.source or _BoardSource()
        return _score(
            model=entry.model_id,
            task="",
            dataset=dataset,
            value=entry.value,
            source=Source(
                title=source.name or f"leaderboard of {dataset}",
                url=_https(source.url),
                note=visible("; ".join(filter(None, ["verified" if entry.verified else "", entry.notes])), 200),
            ),
        )

    return _sorted_out(entries, score)


_E = TypeVar("_E")


class _NotAScoreError(Exception):
    """The entry is no accuracy of a shipped card; the text says why."""


def _sorted_out(entries: list[_E], score: Callable[[_E], PublishedScore]) -> tuple[list[PublishedScore], list[str]]:
    """Make a published score of each entry with the function `score`, which raises `_NotAScoreError` for other entries.

    Returns (the scores, a reason for each of the other entries).
    """
    scores, reasons = [], []
    for entry in entries:
        try:
            scores.append(score(entry))
        except _NotAScoreError as error:
            reasons.append(str(error))
    return scores, reasons


def _score(*, model: str, task: str, dataset: str, value: float, source: Source) -> PublishedScore:
    """Return one result of the hub as a published score. Raises `_NotAScoreError` if it cannot be one.

    dataset: its name on the hub. task: of the data set, as the entry names it.
    """
    card = card_of_task(dataset, task)
    if card is None:
        raise _NotAScoreError(
            f"{visible(dataset, 60)}: no card has this data set, or several have it and the result's task names none "
            "of these"
        )
    if value > 100:
        raise _NotAScoreError(f"{visible(dataset, 60)}: a value above 100, expected a percentage")
    if not value > 1:
        raise _NotAScoreError(f"{visible(dataset, 60)}: a value of at most 1, which may be a fraction or a percentage")
    return PublishedScore(
        model=model,
        benchmark=card.name,
        metric="pass@1",
        value=value / 100,
        n_questions=card.questions,
        samples=None,
        unit=last_digit(value) / 100,
        run_deviation=None,
        stated=False,
        settings={},
        source=source,
    )


def _https(url: str | None) -> str:
    return url if url and url.startswith("https://") else ""
