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
from harness.core.checksums import digest
from harness.core.files import replacing, write_atomically
from harness.core.inert import safe_name
from harness.core.records import Question
from harness.exports import Chosen, Exporter, File, Row
from harness.exports.choice import counted_metrics, json_line, uncertainty, whole, written

FILTER = "harness"
_METRIC = "exact_match"


def lm_eval(chosen: Sequence[Chosen], out: Path) -> list[File]:
    """A file of results, and one of samples for each benchmark: a line a question, with all its replies."""
    model = chosen[0].manifest.model
    folder = out / safe_name(re.sub(r"[\"<>:/|\\?*\[\]]+", "__", model))
    date = re.sub(r"[+:]", "-", chosen[0].manifest.created)
    files = []
    for one in chosen:
        path, n = folder / f"samples_{safe_name(one.name)}_{date}.jsonl", 0
        with replacing(path) as file:
            for line in _lines(one):
                file.write(json_line(line))
                n += 1
        files.append(File(path, n))
    results = folder / f"results_{date}.json"
    write_atomically(results, codec.pretty(_results(chosen)))
    return [File(results, len(chosen)), *files]


def _lines(chosen: Chosen) -> Iterator[dict[str, Any]]:
    places = {question_id: place for place, question_id in enumerate(chosen.questions)}
    for question, rows in chosen.by_question():
        yield _line(places[question.question_id], question, rows)


def _line(place: int, question: Question, rows: Sequence[Row]) -> dict[str, Any]:
    right = [row.grade is not None and row.grade.verdict == "correct" for row in rows]
    answers = [whole(row.grade.extracted) if row.grade and row.grade.extracted is not None else "" for row in rows]
    asked = question.messages[-1].content if question.messages else question.prompt
    target = whole(question.references[0])
    doc = {"question": whole(asked), "answer": target, "question_id": question.question_id, **question.metadata}
    context = codec.encode([[m.role, m.content] for m in question.messages]).decode() if question.messages else asked
    return {
        "doc_id": place,
        "doc": doc,
        "target": target,
        "arguments": {"gen_args_0": {"arg_0": context, "arg_1": {}}},
        "resps": [[whole(written(row.sample, reasoning=True)) for row in rows]],
        "filtered_resps": answers,
        "filter": FILTER,
        "metrics": [_METRIC],
        "doc_hash": question.row_digest,
        "prompt_hash": question.prompt_digest,
        "target_hash": digest(target),
        _METRIC: sum(right) / len(right),
    }


def _results(chosen: Sequence[Chosen]) -> dict[str, Any]:
    results, configs, names = {}, {}, [one.name for one in chosen]
    for one in chosen:
        score, sampling = one.score, one.record.identity.get("sampling") or {}
        found: dict[str, Any] = {"alias": one.name}
        for name, value in counted_metrics(score).items():
            metric = _METRIC if name == "accuracy" else name
            error = score.question_error if name == "accuracy" else None
            found |= {f"{metric},{FILTER}": value, f"{metric}_stderr,{FILTER}": "N/A" if error is None else error}
        results[one.name] = found
        configs[one.name] = {
            "task": one.name, "output_type": "generate_until", "repeats": one.record.plan.samples, "num_fewshot": 0,
            "generation_kwargs": sampling, "metric_list": [{"metric": _METRIC, "higher_is_better": True}],
        }  # fmt: skip
    manifest = chosen[0].manifest
    n = {one.name: {"original": one.score.n_questions, "effective": one.score.n_questions} for one in chosen}
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
        "harness": {one.name: uncertainty(one.score) for one in chosen},
    }


EXPORTER = Exporter(kind="results", about="results and samples of lm-evaluation-harness", write=lm_eval)
