"""Options for what is asked: benchmarks or a file of questions, which questions, and their prompts."""

from __future__ import annotations

from typing import Annotated, Any

from harness.core.limits import MAX_SAMPLES
from harness.core.options import ADDRESS, COMMAS, Kind, Option, Options
from harness.options.headings import ASKED


def _shard(value: Any) -> Any:
    """A shard as text in its canonical spelling; another value stays. Raises `UsageError` for a wrong text."""
    from harness.benchmarks.shards import Shard

    return str(Shard.parse(value)) if isinstance(value, str) else value


SHARD = Kind("str", _shard)
"""Kind of an option that holds a part of a run, such as `2/8`; its value gets the canonical spelling."""

OF_DATA = ("question_key", "answer_key", "id_key", "choices_key", "split")
"""Names of the options that say how the file in `data` is read."""


class WhatIsAsked(Options):
    """Which questions are asked, how often, and with which prompt."""

    benchmarks: Annotated[tuple[str, ...], Option(argument=True, kind=COMMAS)] = ()
    """NAME, NAME:SAMPLES or a card's file."""
    samples: Annotated[float | None, Option(under=ASKED, least=1, most=MAX_SAMPLES)] = None
    """Samples per question, for all benchmarks; `aime24:64` asks for 64 of aime24 alone. With 1.25 a quarter of the
    questions have a second one. Default: the card's.

    Samples of each question; an error if every benchmark names its own number.
    """
    limit: Annotated[int | None, Option(under=ASKED, least=1)] = None
    """Only the first N questions."""
    ids: Annotated[tuple[str, ...] | None, Option(under=ASKED, kind=COMMAS)] = None
    """Only these question ids, separated by commas."""
    filter: Annotated[tuple[str, ...], Option(under=ASKED, metavar="COLUMN=VALUE")] = ()
    """Only questions whose column has this value; may be repeated."""
    shard: Annotated[str | None, Option(under=ASKED, metavar="I/N", kind=SHARD)] = None
    """Ask only the I-th of N parts of the questions, while other clients ask the other parts of the same run.

    The part of the questions; see docs/scaling.md.
    """
    data: Annotated[str | None, Option(under=ASKED, kind=ADDRESS)] = None
    """JSONL, JSON, CSV or Parquet file of questions, also .gz and .zst."""
    question_key: Annotated[str | None, Option(under=ASKED)] = None
    """Column of the question in `data`."""
    answer_key: Annotated[str | None, Option(under=ASKED)] = None
    """Column of the reference answer in `data`."""
    choices_key: Annotated[tuple[str, ...], Option(under=ASKED, metavar="COLUMN[,COLUMN...]", kind=COMMAS)] = ()
    """Multiple choice: the column of `data` with the list of options, or several columns with one option each. The
    answer names an option by letter, by index from 0, or by its text.
    """
    id_key: Annotated[str | None, Option(under=ASKED)] = None
    """Column of the question's id in `data`. Default: id, or a checksum of the row."""
    split: Annotated[str | None, Option(under=ASKED)] = None
    """Split of `data`, a folder of splits."""
    prompt: Annotated[str | None, Option(under=ASKED)] = None
    """Prompt by name. Default: the card's."""
    system_prompt: Annotated[str | None, Option(under=ASKED)] = None
    """System prompt, by name or as text; `none` sends none."""
