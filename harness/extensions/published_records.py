"""Convert an Every Eval Ever record (schema 0.x) to a file of published scores, which `harness verify` reads.

    python -m harness.extensions.published_records RECORD.json https://ADDRESS > scores.yaml

Accuracy, pass@k and maj@k are used if their unit is specified; if a benchmark and metric has several results, which may
be for subsets, only the one named as the whole ("overall") is used. A result's `num_samples` counts all samples of all
questions; divided by the number of questions it is the number of samples per question, unknown if there is a remainder.
The address is written to the file as the source; if none is given, the record's own address is used.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from decimal import Decimal, localcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.benchmarks import catalog
from harness.core import codec
from harness.core.errors import HarnessError, UsageError
from harness.core.files import read_named
from harness.core.inert import quoted, visible

if TYPE_CHECKING:
    from harness.benchmarks.card import Card

MAX_FILE_BYTES = 8 * 1024 * 1024
"""Maximum size of a record, in bytes; its longest lists are the question ids."""

_ACCURACY = {"accuracy", "acc", "exactmatch", "em"}
"""Names of the accuracy metric, as normalized by `_metric`."""
_DRAWN = re.compile(r"(pass|maj|cons)(?:@|at)([1-9][0-9]{0,5}|k)")
"""Names of pass@k and maj@k, normalized in the same way."""
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
"""Unit, or maximum score → the score of a benchmark answered entirely correctly."""
_OVERALL = re.compile(r"\s*\((?:overall|average)\)\s*$|[/.: ]overall$|^overall$", re.IGNORECASE)
"""The suffix of a name that marks a result for the whole benchmark."""
_SETTINGS = ("temperature", "top_p", "top_k", "max_tokens")
"""Sampling settings that are copied."""


def scores_of(path: Path, address: str = "") -> dict[str, Any]:
    """The content of the file of published scores. Raises a `UsageError` that names the record and the problem."""
    try:
        data = read_named(path, MAX_FILE_BYTES)
        if len(data) > MAX_FILE_BYTES:
            raise UsageError(
                f"{path} is too large for an Every Eval Ever record; the limit is {MAX_FILE_BYTES:,} bytes"
            )
        with localcontext():  # a score that is not a number sets a flag in the context
            return _content(codec.decode(data, dict[str, Any]), address)
    except OSError as error:
        raise UsageError(f"cannot read an Every Eval Ever record from {path}: {error.strerror or error}") from error
    except UsageError as error:
        raise UsageError(f"{path}: {error.sentence}") from error
    except (codec.DecodeError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise UsageError(f"{path} is not an Every Eval Ever record: {quoted(repr(error))}") from error


def _content(record: dict[str, Any], address: str) -> dict[str, Any]:
    """The content of the file of published scores. Raises any of the errors that `scores_of` turns into a sentence."""
    if not record["schema_version"].startswith("0."):
        raise UsageError(f"schema_version is {quoted(record['schema_version'])}; expected 0.x for Every Eval Ever")
    about, library, results = record["source_metadata"], record["eval_library"], record["evaluation_results"]
    scores = [score for score in map(_score, results) if score is not None]
    times = Counter((score.row["benchmark"], score.row["metric"]) for score in scores)
    wholes = [score for score in scores if score.is_whole or times[score.row["benchmark"], score.row["metric"]] == 1]
    if not wholes:
        raise UsageError("it contains no benchmark-level accuracy, pass@k or maj@k in a known unit")
    urls = [
        address,
        about.get("source_organization_url"),
        *(url for result in results for url in result["source_data"].get("url") or ()),
    ]
    url = next((url for url in urls if url and url.startswith("https://")), None)
    if url is None:
        raise UsageError("it has no https URL for its source; pass the URL as the second argument")
    return {
        "schema": 1,
        "source": {
            "title": about.get("source_name") or about["source_organization_name"],
            "url": url,
            "by": "authors" if about["evaluator_relationship"] == "first_party" else "others",
            "engine": (record["model_info"].get("inference_engine") or {}).get("name", ""),
            "note": f"evaluated by {library['name']} {library['version']}",
        },
        "questions": {score.row["benchmark"]: score.n_questions for score in wholes},
        "scores": [{"model": record["model_info"]["id"], **score.row} for score in wholes],
    }


class _Score(NamedTuple):
    """A score in the record. is_whole: whether it is named as the score of the whole benchmark. row: its line in our
    file, without the model. n_questions: None if unknown."""

    is_whole: bool
    row: dict[str, Any]
    n_questions: int | None


def _score(result: dict[str, Any]) -> _Score | None:
    """The score in a result; None if it has another metric or an unknown unit. Raises `ValueError` for a score that its
    unit does not allow, and `LookupError` or `TypeError` for an unexpected structure.
    """
    config, details, data = result["metric_config"], result["score_details"], result["source_data"]
    units = {_SCALES.get(str(config.get(name)).casefold()) for name in ("metric_unit", "max_score")} - {None}
    metric = _metric(config)
    if metric is None or len(units) != 1:
        return None
    (scale,) = units
    assert scale is not None  # the score of a benchmark answered entirely correctly
    share = Decimal(repr(details["score"])) / scale
    if not 0 <= share <= 1:
        raise ValueError(f"the score {details['score']} is not between 0 and {scale}")
    name = _OVERALL.sub("", result["evaluation_name"]) or data["dataset_name"]
    names = (name, data["dataset_name"], data.get("hf_repo") or "")
    card = next((card for card in catalog.shipped_cards() if _is_named(card, names)), None)
    uncertainty = details.get("uncertainty") or {}
    n_samples, error = uncertainty.get("num_samples"), uncertainty.get("standard_error")
    n = _n_questions(data, card, n_samples)
    settings = (result.get("generation_config") or {}).get("generation_args") or {}
    row = {
        "benchmark": card.name if card else visible(name, 80),
        "metric": metric,
        # For a score in percent, the digits as written.
        "percent": f"{(100 * share).normalize():f}" if scale == 1 else f"{Decimal(repr(details['score'])):f}",
        "settings": {key: settings[key] for key in _SETTINGS if settings.get(key) is not None},
        **({"samples": n_samples // n} if n and n_samples and not n_samples % n else {}),
        **({"standard_error": 100 * error["value"] / scale} if error else {}),
    }
    return _Score(_OVERALL.search(result["evaluation_name"]) is not None, row, n)


def _n_questions(data: dict[str, Any], card: Card | None, n_samples: int | None) -> int | None:
    """The number of questions: from the data if specified, otherwise the card's number if the sample count is a
    multiple of it; None if unknown."""
    stated = data.get("samples_number") or (data.get("additional_details") or {}).get("samples_number")
    if re.fullmatch("[1-9][0-9]{0,8}", str(stated)):
        return int(str(stated))
    fits = card is not None and card.questions and n_samples and not n_samples % card.questions
    return card.questions if card is not None and fits else None


def _is_named(card: Card, names: tuple[str, ...]) -> bool:
    """Whether the card, one of its aliases, or its data set on the hub has one of these names."""
    folded = {catalog.fold_name(name) for name in (card.name, *card.aliases)}
    own = {getattr(card.source, "id", "").casefold()} - {""}
    return any(catalog.fold_name(name) in folded or name.casefold() in own for name in names if name)


def _metric(config: dict[str, Any]) -> str | None:
    """The metric in our spelling, such as pass@8; None for a metric that our runs do not report."""
    for name in ("metric_id", "metric_name", "metric_kind") if not config["lower_is_better"] else ():
        # Sources write exact_match, Exact Match and exact-match.
        spelled = re.sub(r"[\s_-]+", "", (config.get(name) or "").casefold())
        if spelled in _ACCURACY:
            return "pass@1"
        if match := _DRAWN.fullmatch(spelled):
            drawn = match[2] if match[2] != "k" else str((config.get("metric_parameters") or {}).get("k"))
            if re.fullmatch("[1-9][0-9]{0,5}", drawn):
                metric = "pass" if match[1] == "pass" else "maj"
                return f"{metric}@{drawn}"
    return None


def main() -> None:
    """Print, as YAML, the file of published scores for an Every Eval Ever record.

    The command line contains the record's file and, optionally, the address of its source.
    """
    import yaml

    try:
        content = scores_of(Path(sys.argv[1]), *sys.argv[2:3])
    except HarnessError as error:
        raise SystemExit(str(error)) from error
    sys.stdout.write(yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=110))


if __name__ == "__main__":
    main()
