"""What is pinned of a result: the only place that knows how the product spells its records and files.

Where the product spells one otherwise, a line here changes, and no data.
"""

from __future__ import annotations

import contextlib
import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec


def plain(value: Any) -> Any:
    """A Python value as JSON."""
    return msgspec.to_builtins(
        value, str_keys=True, enc_hook=lambda one: one.tolist() if hasattr(one, "tolist") else str(one)
    )


def pick(record: Mapping[str, Any], names: str) -> dict[str, Any]:
    """The named fields (`speed.lag`: of a record within) under their last names; what is empty is left out."""
    picked = {}
    for name in names.split():
        value: Any = record
        for part in name.split("."):
            value = value[part]
        if value not in (None, [], {}, ""):
            picked[name.rpartition(".")[2]] = value
    return picked


def bare(value: Any, unwanted: str) -> Any:
    """The value without the keys that match, at any depth."""
    if isinstance(value, dict):
        return {key: bare(item, unwanted) for key, item in value.items() if not re.search(unwanted, key)}
    return [bare(item, unwanted) for item in value] if isinstance(value, list) else value


# ---- scores and decisions

SCORE = """accuracy sampling_interval question_interval sampling_error question_error n_questions n_samples n_missing
    n_truncated n_undecided n_correct n_no_answer partial rounds samples_per_question n_clusters pass_at
    pass_at_intervals pass_hat pass_hat_intervals maj_at maj_at_intervals accuracy_finished accuracy_finished_intervals
    mean_completion_tokens undecided_bounds tokens breakdowns n_overridden accuracy_overridden judge_errors audited"""


def scores(rows: Any) -> dict[str, Any]:
    """Scores by benchmark; budgets by the number of their tokens."""
    found = {}
    for row in map(plain, rows):
        row |= named("accuracy", row["accuracy"])
        for name in ("accuracy_finished", "accuracy_overridden"):
            row |= named(name, row[name], f"{name}_intervals")
        for name in ("pass_at", "pass_hat", "maj_at"):
            each = {k: named("value", one, "intervals") for k, one in row[name].items()}
            row |= {name: {k: one["value"] for k, one in each.items()}}
            row |= {f"{name}_intervals": {k: one["intervals"] for k, one in each.items()}}
        row["tokens"] = {
            of: counts and counts | named("mean", counts["mean"], "mean_intervals")
            for of, counts in (row["tokens"] or {}).items()
        }
        if row["audited"]:
            row["audited"] |= named("accuracy", row["audited"]["accuracy"], "intervals")
        row["breakdowns"] = {
            field: {value: group | named("accuracy", group["accuracy"]) for value, group in groups.items()}
            for field, groups in row["breakdowns"].items()
        }
        budgets = {
            tokens: pick(named("accuracy", one["accuracy"]) | {"cut": one["cut"]}, "accuracy sampling_interval cut")
            for tokens, one in row["budgets"].items()
        }
        found[row["benchmark"]] = pick(row, SCORE) | {"budgets": budgets}
    return {"scores": found}


def named(name: str, estimate: Mapping[str, Any] | None, intervals: str = "") -> dict[str, Any]:
    """An estimate's value under a name, beside its intervals, or with a record of these under another name."""
    if estimate is None:
        return {name: None, **({intervals: None} if intervals else {})}
    both = {f"{of}_interval": estimate[of] for of in ("sampling", "question")}
    return {name: estimate["value"], **({intervals: both} if intervals else both)}


DECISION = """verdict kind_verdict paired.first_accuracy paired.second_accuracy difference
    sampling_interval p_sampling question_interval p_question detectable paired.n_questions
    paired.n_missing paired.better paired.worse"""


def decisions(rows: Any) -> dict[str, Any]:
    """How each run stands beside the first, by run and benchmark."""
    told = [row.get("decision", row) for row in plain(rows)]
    for row in told:
        row |= named("difference", row["paired"]["difference"])
    return {"decisions": {f"{row['run']}: {row['paired']['benchmark']}": pick(row, DECISION) for row in told}}


def checks(rows: Any) -> dict[str, Any]:
    """How a run stands beside what is published."""
    of_score = "published.model published.value ours difference error p detectable verdict"
    told = {
        row["benchmark"]: {"standing": row["standing"], "beside": [pick(c, of_score) for c in row["comparisons"]]}
        for row in plain(rows)
    }
    return {"checks": told}


def needed(rows: Any) -> dict[str, Any]:
    """The samples that a difference takes, with their tokens and price."""
    fields = """n_questions accuracy deviation samples smallest_difference"""
    forecast = "n_samples tokens tokens_error prompt_tokens usd"
    return {"plan": [pick(row, fields) | {"takes": pick(row["forecast"] or {}, forecast)} if row["forecast"]
                     else pick(row, fields) for row in plain(rows)]}  # fmt: skip


def raced(value: Any) -> dict[str, Any]:
    """How each candidate stands."""
    fields = "rounds difference interval verdict called withheld"
    return {"race": {name: pick(one, fields) for name, one in value.items()}}


def swept(value: Any) -> dict[str, Any]:
    """A sweep's cells and the means of its suite."""
    fields = """accuracy sampling_low sampling_high question_low question_high pass_at_k mean_tokens questions samples
        difference p"""
    return {"cells": {one["cell"]: pick(one, fields) for one in value["cells"]}, "means": value["means"]}


REPORTED = f"({'|'.join(SCORE.split())}|(sampling|question)_(low|high)|(pass@|pass\\^|maj@).*)$"


def reported(folder: Path) -> dict[str, Any]:
    """The numbers in the rows of a report's CSV, by model and benchmark."""
    rows = rows_of_csv(folder / "report.csv")
    names = {re.sub("^accuracy_(?=(sampling|question)_(low|high))", "", name): name for name in rows[0]}
    names = {short: name for short, name in names.items() if re.match(REPORTED, short) and "at_most" not in short}
    return {
        "report": {
            f"{row['model']}: {row['benchmark']}": {
                short: row[name] for short, name in names.items() if row[name] != ""
            }
            for row in rows
        }
    }


def rows_of_csv(path: Path) -> list[dict[str, Any]]:
    """The rows of a CSV file, with numbers in place of their digits."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return [{name: number(text) for name, text in row.items()} for row in csv.DictReader(file)]


def number(text: str) -> float | int | str:
    """The number that a text is, or the text."""
    with contextlib.suppress(ValueError):
        return int(text)
    with contextlib.suppress(ValueError):
        return float(text)
    return text


# ---- runs


def ran(value: Any) -> dict[str, Any]:
    """How a session ended, where it was told."""
    if not isinstance(value, dict):
        return {}
    picked = pick(value, "complete samples.expected samples.done samples.owed new_tokens stopped")
    return {"run": picked, "causes": value["causes"]}


def rows_of(run: Path, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(key, row) of a file of JSON lines of each benchmark, by question and sample; of equal keys the last."""
    found = {}
    for path in sorted(run.glob(f"*/{name}.jsonl")):
        for row in map(json.loads, path.read_text("utf-8").splitlines()):
            found[":".join(str(row[key]) for key in ("question_id", "sample_index") if key in row)] = row
    yield from sorted(found.items())


def samples(run: Path) -> dict[str, Any]:
    """A run's samples by question and number. tokens: of the prompt, of the reply, of its reasoning."""
    counts = ("prompt_tokens", "completion_tokens", "reasoning_tokens")
    told = {
        key: pick(row, "text reasoning finish_reason") | {"tokens": [(row["usage"] or {}).get(n) for n in counts]}
        for key, row in rows_of(run, "samples")
    }
    return {"samples": told}


def questions(run: Path) -> dict[str, Any]:
    """A run's questions: what is right, and how it is compared."""
    return {"questions": {key: pick(row, "references kind choices metadata") for key, row in rows_of(run, "questions")}}


def settings(run: Path) -> dict[str, Any]:
    """What a run may not be continued with otherwise, by benchmark."""
    manifest = json.loads((run / "manifest.json").read_text("utf-8"))["benchmarks"]
    fields = """identity.model identity.api identity.sampling identity.fitted_max_tokens identity.seed identity.prompt
        identity.system_prompt identity.chat_template_kwargs identity.extra_body plan.samples"""
    return {"settings": {name: pick(one, fields) for name, one in manifest.items()}}


def verdicts(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """Verdict and answer of each sample; a third word says that a judge or a person decided."""
    told = {}
    for key, row in rows:
        by = re.findall(r"\+(\w+)", row["grader"])
        told[key] = [row["verdict"], row["extracted"], *by]
    return {"verdicts": told}


def graded(run: Path) -> dict[str, Any]:
    """The verdicts of a run folder."""
    return verdicts(rows_of(run, "grades"))


def progress(rows: Any) -> dict[str, Any]:
    """What a status says of runs."""
    told = [
        {"state": row["state"], "benchmarks": row["files"]["benchmarks"]}
        | {
            name: pick(one | {"accuracy": one["accuracy"]["value"]}, "accuracy n_samples n_undecided")
            for name, one in (row["scores"] or {}).items()
        }
        for row in rows
    ]
    return {"status": told}


# ---- what is text only


def shown(text: str) -> dict[str, Any]:
    """The questions and samples that a text names."""
    listed = re.findall(r"\b(q\d+|demo-\d+|r\d+)(?: · sample (\d+))?", text)
    return {"shown": sorted({":".join(filter(None, pair)) for pair in listed})}


def verdict(graded: Any) -> dict[str, Any]:
    """The last of a grading's steps: the verdict."""
    return {"verdict": (graded.splitlines() if isinstance(graded, str) else graded.steps)[-1]}


def first_words(table: str) -> list[str]:
    """The first words of a table's lines."""
    return [line.split()[0] for line in table.splitlines() if line.split()]


def outcomes(report: Any) -> dict[str, Any]:
    """The word that each check of a probe came to."""
    return {"checks": {one["check"]: one["outcome"] for one in report["findings"]}}
