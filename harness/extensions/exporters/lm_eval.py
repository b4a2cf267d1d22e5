"""lm-evaluation-harness: `results_<date>.json` and `samples_<task>_<date>.jsonl` in a folder of the model's name.

Names and fields as lm_eval 0.4 writes them (lm_eval/loggers/evaluation_tracker.py). Its `stderr` is sd/√questions: the
question error. It has no room for intervals; they stand under `harness`, which its tables pass over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from harness.core import codec
from harness.core.about import __version__
from harness.core.codec import digest
from harness.core.files import replacing, write_atomically
from harness.core.inert import safe_name
from harness.core.records import Question
from harness.exports import ExportedBenchmark, Exporter, File, SampleRow
from harness.exports.choice import json_line, metrics_of, reply_text, uncertainty, without_lone_surrogates

FILTER = "harness"
_METRIC = "exact_match"


def lm_eval(benchmarks: Sequence[ExportedBenchmark], out: Path) -> list[File]:
    """Write a file of results, and for each benchmark a file with a line for each question and all its replies."""
    model = benchmarks[0].manifest.model
    # The rule by which lm_eval itself makes a folder's name from a model's (`sanitize_model_name`).
    folder = out / safe_name(re.sub(r"[\"<>:/|\\?*\[\]]+", "__", model))
    date = re.sub(r"[+:]", "-", benchmarks[0].manifest.created)
    files = []
    for benchmark in benchmarks:
        path, n = folder / f"samples_{safe_name(benchmark.name)}_{date}.jsonl", 0
        with replacing(path) as file:
            for line in _lines(benchmark):
                file.write(json_line(line))
                n += 1
        files.append(File(path, n))
    results = folder / f"results_{date}.json"
    write_atomically(results, codec.pretty(_results(benchmarks)))
    return [File(results, len(benchmarks)), *files]


def _lines(benchmark: ExportedBenchmark) -> Iterator[dict[str, Any]]:
    indices = {question_id: index for index, question_id in enumerate(benchmark.questions)}
    for question, rows in benchmark.by_question():
        yield _line(indices[question.question_id], question, rows)


def _line(index: int, question: Question, rows: Sequence[SampleRow]) -> dict[str, Any]:
    """One question with its samples as a line of lm-eval's sample log. index: the question's number, from 0."""
    right = [row.grade is not None and row.grade.verdict == "correct" for row in rows]
    answers = [
        without_lone_surrogates(row.grade.extracted) if row.grade and row.grade.extracted is not None else ""
        for row in rows
    ]
    text = question.messages[-1].content if question.messages else question.prompt
    target = without_lone_surrogates(question.references[0])
    doc = {
        "question": without_lone_surrogates(text),
        "answer": target,
        "question_id": question.question_id,
        **question.metadata,
    }
    context = codec.encode([[m.role, m.content] for m in question.messages]).decode() if question.messages else text
    return {
        "doc_id": index,
        "doc": doc,
        "target": target,
        "arguments": {"gen_args_0": {"arg_0": context, "arg_1": {}}},
        "resps": [[without_lone_surrogates(reply_text(row.sample, reasoning=True)) for row in rows]],
        "filtered_resps": answers,
        "filter": FILTER,
        "metrics": [_METRIC],
        "doc_hash": question.row_digest,
        "prompt_hash": question.prompt_digest,
        "target_hash": digest(target),
        _METRIC: sum(right) / len(right),
    }


def _results(benchmarks: Sequence[ExportedBenchmark]) -> dict[str, Any]:
    """The content of lm-eval's `results_*.json`."""
    results, configs, names = {}, {}, [benchmark.name for benchmark in benchmarks]
    for benchmark in benchmarks:
        score, sampling = benchmark.score, benchmark.record.identity.get("sampling") or {}
        metrics: dict[str, Any] = {"alias": benchmark.name}
        for name, value in metrics_of(score).items():
            metric = _METRIC if name == "accuracy" else name
            error = score.question_error if name == "accuracy" else None
            metrics |= {f"{metric},{FILTER}": value, f"{metric}_stderr,{FILTER}": "N/A" if error is None else error}
        results[benchmark.name] = metrics
        configs[benchmark.name] = {
            "task": benchmark.name, "output_type": "generate_until", "repeats": benchmark.record.plan.samples,
            "num_fewshot": 0,
            "generation_kwargs": sampling, "metric_list": [{"metric": _METRIC, "higher_is_better": True}],
        }  # fmt: skip
    manifest = benchmarks[0].manifest
    n_questions = {benchmark.name: benchmark.score.n_questions for benchmark in benchmarks}
    n = {name: {"original": n, "effective": n} for name, n in n_questions.items()}
    return {
        "results": results,
        "group_subtasks": {name: [] for name in names},
        "configs": configs,
        "versions": dict.fromkeys(names, 1),
        "n-shot": dict.fromkeys(names, 0),
        "higher_is_better": {name: {_METRIC: True} for name in names},
        "n-samples": n,
        "config": {"model": "reasoning-harness", "model_args": {"model": manifest.model}, "batch_size": 1},
        "model_source": "reasoning-harness",
        "model_name": manifest.model,
        "model_name_sanitized": re.sub(r"[\"<>:/|\\?*\[\]]+", "__", manifest.model),
        "lm_eval_version": f"written by reasoning-harness {__version__}",
        "date": datetime.fromisoformat(manifest.created).timestamp(),
        "harness": {benchmark.name: uncertainty(benchmark.score) for benchmark in benchmarks},
    }


EXPORTER = Exporter(kind="results", about="results and samples of lm-evaluation-harness", write=lm_eval)
