"""Every Eval Ever: one aggregate record per benchmark, and its replies as instance-level records next to it.

Fields as in version 0.3.0 of its two JSON schemas (the package every-eval-ever, `schemas/`). A metric has the wider of
its two intervals, because the format has room for only one; the details include both intervals of the accuracy.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from harness.benchmarks import catalog
from harness.benchmarks.card import HubSource
from harness.core import codec
from harness.core.about import __version__
from harness.core.codec import without_lone_surrogates
from harness.core.files import replacing, write_atomically
from harness.core.inert import safe_name
from harness.exports import ExportedBenchmark, Exporter, File, SampleRow
from harness.exports.choice import json_line, metrics_of, uncertainty
from harness.scoring.score import Score
from harness.scoring.stats import Estimate

SCHEMA = "0.3.0"
"""Version of the schema."""


def every_eval_ever(benchmarks: Sequence[ExportedBenchmark], out: Path) -> list[File]:
    """Write `data/<benchmark>/<developer>/<model>/<uuid>.json` for each benchmark, and `<uuid>_samples.jsonl`."""
    files = []
    for benchmark in benchmarks:
        path, record = aggregate(benchmark)
        identifier, samples = record["evaluation_id"], path.with_name(f"{path.stem}_samples.jsonl")
        n, checksum = 0, hashlib.sha256()
        with replacing(out / samples) as file:
            for row in benchmark.rows():
                line = json_line(_instance(benchmark, identifier, row))
                file.write(line)
                checksum.update(line)
                n += 1
        detailed = {
            "format": "jsonl",
            "file_path": samples.as_posix(),
            "hash_algorithm": "sha256",
            "checksum": checksum.hexdigest(),
            "total_rows": n,
        }
        write_atomically(out / path, codec.pretty({**record, "detailed_evaluation_results": detailed}))
        files += [File(out / path, 1), File(out / samples, n)]
    return files


def aggregate(benchmark: ExportedBenchmark) -> tuple[Path, dict[str, Any]]:
    """The aggregate record of one benchmark, which shows no question, and its path below the export folder."""
    manifest, sampling = benchmark.manifest, benchmark.record.identity.get("sampling") or {}
    moment = str(round(datetime.fromisoformat(manifest.created).timestamp()))
    identifier = f"{benchmark.name}/{manifest.model}/{moment}"
    # The format requires a version 4 UUID; equal runs must have equal names.
    stem = uuid.UUID(bytes=hashlib.sha256(identifier.encode()).digest()[:16], version=4)
    fields = ("temperature", "top_p", "top_k", "max_tokens")
    arguments = {name: sampling[name] for name in fields if sampling.get(name) is not None}
    developer, _, model = manifest.model.rpartition("/")
    developer = developer or "unknown"
    folder = Path("data") / safe_name(benchmark.name) / safe_name(developer) / safe_name(model)
    results = [_result(benchmark, name, value, arguments) for name, value in metrics_of(benchmark.score).items()]
    return folder / f"{stem}.json", {
        "schema_version": SCHEMA,
        "evaluation_id": identifier,
        "evaluation_timestamp": moment,
        "retrieved_timestamp": moment,
        "source_metadata": {
            "source_name": "reasoning-harness",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "reasoning-harness", "version": __version__},
        "model_info": {
            "name": manifest.model,
            "id": manifest.model if "/" in manifest.model else f"unknown/{manifest.model}",
            "developer": developer,
            "additional_details": {"deployment_type": "unknown", "model_availability": "unknown"},
        },
        "evaluation_results": results,
    }


def _result(benchmark: ExportedBenchmark, name: str, value: Estimate, arguments: dict[str, Any]) -> dict[str, Any]:
    """One metric of the score as an entry of `evaluation_results`. arguments: the sampling settings."""
    score = benchmark.score
    about: dict[str, Any] = {"num_samples": score.n_samples}
    details: dict[str, Any] = {"score": value.value, "uncertainty": about}
    metric, _, k = name.partition("@")
    if name == "accuracy":
        details["details"] = _facts(score)
        if score.sampling_error is not None:
            about["standard_error"] = {"value": score.sampling_error, "method": "analytic"}
    named = {"sampling interval": value.sampling, "question interval": value.question}
    if widths := {interval.half_width: (method, interval) for method, interval in named.items() if interval}:
        method, (low, high) = widths[max(widths)]
        about["confidence_interval"] = {
            "lower": low,
            "upper": high,
            "confidence_level": 0.95,
            "method": method,
        }
    return {
        "evaluation_result_id": f"{benchmark.name}/{name}",
        "evaluation_name": benchmark.name,
        "source_data": _source(benchmark),
        "metric_config": {
            "metric_id": {"pass": "pass_at_k", "maj": "maj_at_k"}.get(metric, metric),
            "metric_name": name,
            "metric_unit": "proportion",
            **({"metric_parameters": {"k": int(k)}} if k else {}),
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": 0.0,
            "max_score": 1.0,
        },
        "score_details": details,
        "generation_config": {"generation_args": arguments},
    }


def _facts(score: Score) -> dict[str, str]:
    """Details of a score that have no field in the format, as strings: errors, both intervals, counts, graders, further
    measures."""
    facts = {name: value for name, value in uncertainty(score).items() if value is not None}
    # An interval is a tuple, which becomes a list in JSON.
    texts = {name: str([*value]) if isinstance(value, tuple) else str(value) for name, value in facts.items()}
    return {
        **texts,
        "graders": ", ".join(score.graders),
        **{name: str(measure.value) for name, measure in score.measures.items()},
    }


def _source(benchmark: ExportedBenchmark) -> dict[str, Any]:
    """The source of the questions, in the schema's form for data sets."""
    card, n = catalog.shipped_card_of(benchmark.name, benchmark.record.settings), len(benchmark.questions)
    if card is not None and isinstance(card.source, HubSource):
        return {
            "dataset_name": benchmark.name,
            "source_type": "hf_dataset",
            "hf_repo": card.source.id,
            "samples_number": n,
        }
    # The schema has a field for the number of questions only for hub data.
    return {"dataset_name": benchmark.name, "source_type": "other", "additional_details": {"samples_number": str(n)}}


def _instance(benchmark: ExportedBenchmark, identifier: str, row: SampleRow) -> dict[str, Any]:
    """The instance-level record of one sample."""
    question, sample, grade = row.question, row.sample, row.grade
    text, references = question.last_turn, question.references
    model = benchmark.manifest.model
    right = grade is not None and grade.verdict == "correct"
    extracted = "" if grade is None or grade.extracted is None else grade.extracted
    output = {"raw": [sample.text or ""], **({"reasoning_trace": [sample.reasoning]} if sample.reasoning else {})}
    prompt, completion, first = sample.usage.prompt_tokens, sample.usage.completion_tokens, sample.timing.first_token
    tokens = {"input_tokens": prompt, "output_tokens": completion, "total_tokens": (prompt or 0) + (completion or 0)}
    return {
        "schema_version": SCHEMA,
        "evaluation_id": identifier,
        "model_id": model if "/" in model else f"unknown/{model}",
        "evaluation_name": benchmark.name,
        "evaluation_result_id": f"{benchmark.name}/accuracy",
        "sample_id": question.question_id,
        "sample_hash": hashlib.sha256(without_lone_surrogates(text + "".join(references[:1])).encode()).hexdigest(),
        "interaction_type": "single_turn",
        "input": {"raw": text, "reference": references, "choices": question.choices or None},
        "output": output,
        "answer_attribution": [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": extracted,
                "extraction_method": "custom" if grade is None else f"{grade.grader}: {grade.rule}",
                "is_terminal": True,
            }
        ],
        "evaluation": {"score": 0.0 if grade is None else grade.counted, "is_correct": right},
        "token_usage": None if prompt is None or completion is None else tokens,
        "performance": {
            "latency_ms": 1000 * sample.timing.total,
            "time_to_first_token_ms": None if first is None else 1000 * first,
        },
        "metadata": {"sample_index": str(sample.sample_index), "finish_reason": sample.finish_reason},
    }


EXPORTER = Exporter(kind="results", write=every_eval_ever)
