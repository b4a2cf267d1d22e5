"""Records of Every Eval Ever (`eval.schema.json`, as of version 0.3.0) read as published scores.

Fields of a record that a published score has no field for are ignored. A result is skipped if its metric is not
accuracy, pass@k or maj@k, or if it does not say whether its score is a fraction or a percentage. If several results of
one metric name only the data set of a card, not the card, they may be parts of the benchmark: then only a result named
as that of the whole benchmark ("overall") is read. `num_samples` of a result counts all samples of all questions;
divided by the number of questions it gives the samples of each, which are unknown if the division leaves a remainder.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec

from harness.benchmarks.card import Card
from harness.core import codec
from harness.core.errors import UsageError
from harness.core.files import read_named
from harness.core.inert import quoted, visible
from harness.scoring.published.benchmark_name import NamedBenchmark, find_card, is_overall
from harness.scoring.published.value import PublishedScore, Settings, Source, last_digit

MAX_FILE_BYTES = 8 * 1024 * 1024
"""Largest record that is read, in bytes; the longest lists in it are the ids of its questions."""

MAX_RESULTS = 10_000
"""Largest number of results in a record; a record with more is refused."""

_Count = Annotated[int, msgspec.Meta(ge=0)]
_T = TypeVar("_T")


class _SourceMetadata(msgspec.Struct, frozen=True):
    source_type: Literal["documentation", "evaluation_run"]
    source_organization_name: str
    evaluator_relationship: Literal["first_party", "third_party", "collaborative", "other"]
    source_name: str | None = None
    source_organization_url: str | None = None


class _Library(msgspec.Struct, frozen=True):
    name: str
    version: str


class _Engine(msgspec.Struct, frozen=True):
    name: str = ""


class _ModelInfo(msgspec.Struct, frozen=True):
    name: str
    id: str
    inference_engine: _Engine | None = None


class _Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The record. Its results are decoded one by one, so that an error can name the result."""

    schema_version: str
    evaluation_id: str
    retrieved_timestamp: str
    source_metadata: _SourceMetadata
    eval_library: _Library
    model_info: _ModelInfo
    evaluation_results: list[msgspec.Raw]
    evaluation_timestamp: str | None = None
    detailed_evaluation_results: msgspec.Raw = msgspec.Raw()


class _Data(msgspec.Struct, frozen=True):
    dataset_name: str
    hf_repo: str = ""
    url: list[str] = []
    samples_number: _Count | None = None
    additional_details: dict[str, str] = {}


class _Metric(msgspec.Struct, frozen=True):
    lower_is_better: bool
    metric_id: str | None = None
    metric_name: str | None = None
    metric_kind: str | None = None
    metric_unit: str | None = None
    metric_parameters: dict[str, str | int | float | bool | None] | None = None
    max_score: int | float | str | None = None


class _Error(msgspec.Struct, frozen=True):
    value: Annotated[float, msgspec.Meta(ge=0)]


class _Uncertainty(msgspec.Struct, frozen=True):
    standard_error: _Error | None = None
    num_samples: _Count | None = None


class _Details(msgspec.Struct, frozen=True):
    score: int | float
    uncertainty: _Uncertainty | None = None


class _Arguments(msgspec.Struct, frozen=True):
    """The arguments that have the same names in our runs."""

    temperature: int | float | None = None
    top_p: int | float | None = None
    top_k: int | float | None = None
    max_tokens: int | None = None


class _Generation(msgspec.Struct, frozen=True):
    generation_args: _Arguments | None = None


class _Result(msgspec.Struct, frozen=True):
    evaluation_name: str
    source_data: _Data
    metric_config: _Metric
    score_details: _Details
    generation_config: _Generation | None = None


def read(path: Path) -> list[PublishedScore]:
    """The scores of the record in the file. Raises `UsageError` naming file and field."""
    try:
        data = read_named(path, MAX_FILE_BYTES)
    except OSError as error:
        raise UsageError(f"cannot read a record of Every Eval Ever from {path}: {error.strerror or error}") from error
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(f"{path} is longer than a record of Every Eval Ever may be: {MAX_FILE_BYTES:,} bytes")
    scores, passed_over = scores_of(data, str(path))
    if not scores:
        passed = ", ".join(list(dict.fromkeys(passed_over))[:10]) or "no result"
        raise UsageError(f"{path} has no accuracy, pass@k or maj@k to compare with; it holds {passed}")
    return scores


def scores_of(data: bytes, where: str) -> tuple[list[PublishedScore], list[str]]:
    """Return (the scores of a record, for each other result in it a reason why it is no score).

    where: the record's name for messages. Raises `UsageError` that names `where` and the field, if `data` are no
    record.
    """
    record = _decode(data, _Record, where)
    if not record.schema_version.startswith("0."):
        raise UsageError(
            f"{where}: schema_version is {quoted(record.schema_version)}, expected 0.x of Every Eval Ever's schema"
        )
    if len(record.evaluation_results) > MAX_RESULTS:
        raise UsageError(f"{where} holds more than {MAX_RESULTS:,} evaluation_results")
    passed_over: list[str] = []
    read: list[tuple[_Result, NamedBenchmark, PublishedScore]] = []
    for number, raw in enumerate(record.evaluation_results):
        path_in_file = f"{where}: evaluation_results[{number}]"
        result = _decode(bytes(raw), _Result, path_in_file)
        metric = _metric(result.metric_config)
        scale = _scale(result.metric_config, path_in_file) if metric else None
        if metric is None or scale is None:
            name = result.metric_config.metric_name or result.metric_config.metric_id or "a metric without a name"
            passed_over.append(f"{visible(name, 40)}{' in no known unit' if metric else ''}")
        else:
            meant = _benchmark(result)
            read.append((result, meant, _score(record, result, meant.card, metric, scale, path_in_file)))
    scores = []
    for result, meant, score in read:
        # All results of this benchmark and metric: its parts, and perhaps the whole.
        beside = [sibling for sibling, its, drawn in read if its.card is meant.card and drawn.metric == score.metric]
        whole = [sibling for sibling in beside if _is_whole(sibling)]
        if meant.card is None or meant.by_name or len(beside) == 1 or (len(whole) == 1 and whole[0] is result):
            scores.append(score)
        else:
            passed_over.append(f"a part of {visible(score.benchmark, 40)}")
    return scores, passed_over


def _decode(data: bytes, of: type[_T], where: str) -> _T:
    try:
        return codec.decode(data, of)
    except codec.DecodeError as error:
        raise UsageError(f"{where} is no record of Every Eval Ever: {quoted(str(error))}") from error


_ACCURACY = {"accuracy", "acc", "exactmatch", "em"}
_DRAWN = re.compile(r"(pass|maj|cons)(?:@|at)([1-9][0-9]{0,5}|k)")


def _metric(config: _Metric) -> str | None:
    """The metric in our spelling, such as pass@8; None for a metric that our runs do not have."""
    if config.lower_is_better:
        return None
    for name in (config.metric_id, config.metric_name, config.metric_kind):
        # Sources write exact_match, Exact Match and exact-match.
        spelled = re.sub(r"[\s_-]+", "", (name or "").casefold())
        if spelled in _ACCURACY:
            return "pass@1"
        if match := _DRAWN.fullmatch(spelled):
            drawn = match[2] if match[2] != "k" else str((config.metric_parameters or {}).get("k"))
            if re.fullmatch("[1-9][0-9]{0,5}", drawn):
                return f"{'pass' if match[1] == 'pass' else 'maj'}@{drawn}"
    return None


_SCALES = {
    "proportion": 1,
    "fraction": 1,
    "percent": 100,
    "percentage": 100,
    "%": 100,
    "1": 1,
    "1.0": 1,
    "100": 100,
    "100.0": 100,
}


def _scale(config: _Metric, where: str) -> int | None:
    """The score that means "all correct", 1 or 100, from the unit and the largest score; None if neither is stated."""
    stated = [_SCALES.get(str(value).casefold()) for value in (config.metric_unit, config.max_score)]
    scales = {scale for scale in stated if scale is not None}
    if len(scales) > 1:
        raise UsageError(
            f"{where}.metric_config: metric_unit {quoted(repr(config.metric_unit))} does not fit max_score "
            f"{quoted(repr(config.max_score))}; expected `proportion` with 1, or `percent` with 100"
        )
    return scales.pop() if scales else None


def _score(record: _Record, result: _Result, card: Card | None, metric: str, scale: int, where: str) -> PublishedScore:
    """Return one result of a record as a published score. Raises `UsageError` for a score outside 0 to `scale`.

    card: of the benchmark; None if no card is known. metric: such as `pass@1`. scale: 1 for fractions, 100 for percent.
    where: the result's place in the file, for messages.
    """
    details, data = result.score_details, result.source_data
    if not 0 <= details.score <= scale:
        raise UsageError(
            f"{where}.score_details.score is {quoted(repr(details.score))}, expected a number from 0 to {scale}"
        )
    uncertainty = details.uncertainty or _Uncertainty()
    n_questions, n_samples = _questions(data, card, uncertainty.num_samples), uncertainty.num_samples
    error = uncertainty.standard_error
    computed = record.source_metadata.source_type == "evaluation_run"
    return PublishedScore(
        model=record.model_info.id,
        benchmark=card.name if card else result.evaluation_name,
        metric=metric,
        by="authors" if record.source_metadata.evaluator_relationship == "first_party" else "others",
        value=details.score / scale,
        n_questions=n_questions,
        samples=n_samples // n_questions if n_samples and n_questions and not n_samples % n_questions else None,
        # A computed score was not rounded for print.
        unit=0.0 if computed else last_digit(details.score) / scale,
        run_deviation=None,
        standard_error=None if error is None else error.value / scale,
        settings=_settings(result.generation_config),
        source=_source(record, data),
    )


def _benchmark(result: _Result) -> NamedBenchmark:
    """The card that a result means: the one that it names, else the card of its data set.

    The data set may be the only clue, because lm-eval appends the name of a filter to the name of its task.
    """
    data = result.source_data
    datasets = (data.dataset_name, data.hf_repo, data.additional_details.get("benchmark_hf_repo", ""))
    return find_card((result.evaluation_name,), filter(None, datasets))


def _is_whole(result: _Result) -> bool:
    """Whether a result is named as that of the whole benchmark."""
    return is_overall(result.evaluation_name) or is_overall(result.metric_config.metric_id or "")


def _questions(data: _Data, card: Card | None, n_samples: int | None) -> int | None:
    """The number of questions; None if unknown.

    It is `samples_number`, which records about data on the hub have; else the text of that name in
    `additional_details`, where other records have it; else that of the card, if it divides `n_samples`.
    """
    digits = data.additional_details.get("samples_number", "")
    stated = data.samples_number or (int(digits) if re.fullmatch("[1-9][0-9]{0,8}", digits) else None)
    of_card = card.questions if card else None
    return stated or (of_card if of_card and n_samples and not n_samples % of_card else None)


def _settings(generation: _Generation | None) -> Settings:
    """The sampling settings that the record states."""
    if generation is None or generation.generation_args is None:
        return {}
    given = msgspec.structs.asdict(generation.generation_args)
    return {name: value for name, value in given.items() if value is not None}


def _source(record: _Record, data: _Data) -> Source:
    """The source of a result: title, address, who measured it."""
    about, engine = record.source_metadata, record.model_info.inference_engine
    urls = [url for url in (about.source_organization_url, *data.url) if url and url.startswith("https://")]
    return Source(
        title=about.source_name or about.source_organization_name,
        url=urls[0] if urls else "",
        engine=engine.name if engine else "",
        note=f"evaluated by {record.eval_library.name} {record.eval_library.version}",
    )
