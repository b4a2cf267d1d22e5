"""The results of lm-evaluation-harness: one `results_TIME.json` per model, and one `samples_TASK_TIME.jsonl` per task.

Keys as in lm_eval 0.4.13 (`lm_eval/result_schema.py`, `loggers/evaluation_tracker.py`). `lm_eval_version` names this
package as the writer; readers recognize a file by that key. Values are fractions, and a standard error is the error for
new questions. Anything without a key in the format (both intervals, missing samples, warnings) is below
`reasoning_harness`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.benchmarks import catalog, prompts, task_names
from harness.benchmarks.card import Card
from harness.core import codec
from harness.core.codec import without_lone_surrogates
from harness.core.errors import UsageError
from harness.core.files import replacing, write_atomically
from harness.core.installation import __version__
from harness.core.records import Question
from harness.core.sanitize import safe_name, visible
from harness.exports import ExportedBenchmark, Exporter, File, SampleRow
from harness.exports.selection import json_line, metrics_of, uncertainty

FORM = "0.4.13"
"""The version of lm_eval whose format is written."""
METRIC = "exact_match"
"""The metric of a task; readers look it up under this name, with the filter after a comma."""
UNKNOWN = "N/A"
"""The value that lm_eval uses for an unknown error."""


def lm_eval(benchmarks: Sequence[ExportedBenchmark], out: Path) -> list[File]:
    """Write the files to the model's folder, named as in lm_eval. Raises `UsageError` for several models.

    A benchmark whose authors ask not to publish its questions has results but no samples.
    """
    models = sorted({benchmark.manifest.model for benchmark in benchmarks})
    if len(models) > 1:
        listed = ", ".join(visible(model, 100) for model in models)
        raise UsageError(f"an lm_eval file can contain only one model, not {listed}: export each model separately")
    sanitized = re.sub(r'["<>:/|\\?*\[\]]+', "__", models[0])  # lm_eval.utils.sanitize_model_name
    sanitized = sanitized if re.fullmatch(r"[A-Za-z0-9][\w.+-]{0,199}", sanitized, re.ASCII) else safe_name(sanitized)
    started, ended = _times(benchmarks)
    moment = datetime.fromtimestamp(ended, UTC).replace(tzinfo=None).isoformat(timespec="microseconds")
    ending = moment.replace(":", "-")
    files = []
    for each in benchmarks:
        if catalog.may_publish(each.name, each.record.settings):
            files.append(_samples(each, out / sanitized / f"samples_{safe_name(_name(each))}_{ending}.jsonl"))
        else:
            each.left_out["of questions whose authors ask that they not be published"] = len(each.grades)
    record = {
        **_of_tasks(benchmarks),
        "config": _config(benchmarks[0]),
        "git_hash": None,
        "lm_eval_version": f"{FORM}+reasoning-harness",
        "date": started,
        "model_source": "reasoning-harness",
        "model_name": models[0],
        "model_name_sanitized": sanitized,
        "start_time": started,
        "end_time": ended,
        "total_evaluation_time_seconds": str(ended - started),
    }
    path = out / sanitized / f"results_{ending}.json"
    write_atomically(path, codec.pretty(record))
    return [File(path, len(benchmarks)), *files]


def _times(benchmarks: Sequence[ExportedBenchmark]) -> tuple[float, float]:
    """When sampling started and ended, as Unix times; if no sample has a time, the run's creation time, twice."""
    works = [work for each in benchmarks if (work := each.score.workload)]
    if not works:
        return (datetime.fromisoformat(benchmarks[0].manifest.created).timestamp(),) * 2
    return min(work.started for work in works), max(work.ended for work in works)


def _of_tasks(benchmarks: Sequence[ExportedBenchmark]) -> dict[str, Any]:
    """The parts of the results with an entry for each task."""
    by_task: dict[str, dict[str, Any]] = {_name(benchmark): _task(benchmark) for benchmark in benchmarks}
    names = dict.fromkeys(key for parts in by_task.values() for key in parts)
    return {name: {task: parts[name] for task, parts in by_task.items() if name in parts} for name in names}


def _name(benchmark: ExportedBenchmark) -> str:
    """The name of a benchmark's task: a tool's own for a run with the prompt of that tool, and otherwise the card's."""
    return task_names.name_in(str(benchmark.record.identity.get("prompt")), benchmark.name)


def _task(benchmark: ExportedBenchmark) -> dict[str, Any]:
    """The results of one task, keyed by the part of the results to which each entry belongs."""
    name, score, record = benchmark.name, benchmark.score, benchmark.record
    card = catalog.shipped_card_of(name, record.settings)
    own_data = record.settings.get(catalog.DATA) is not None
    metrics: dict[str, Any] = {}
    for metric, estimate in metrics_of(score).items():
        error = score.question_error if metric == "accuracy" else None
        key = METRIC if metric == "accuracy" else metric
        metrics |= {f"{key},none": estimate.value, f"{key}_stderr,none": UNKNOWN if error is None else error}
    if score.accuracy is not None:  # if a task has no filter, InferenceX reads `acc`
        metrics |= {"acc": score.accuracy.value, "acc_stderr": metrics[f"{METRIC}_stderr,none"]}
    shots = _shots(benchmark, card)
    in_data = None if card is None or own_data else card.questions
    return {
        "results": {"name": _name(benchmark), "alias": name, "sample_len": score.n_questions, **metrics},
        "group_subtasks": [],
        "configs": {
            "task": _name(benchmark),
            "output_type": "generate_until",
            "metric_list": [{"metric": METRIC, "aggregation": "mean", "higher_is_better": True}],
            "filter_list": [],
            "repeats": record.plan.samples,
            **({} if shots is None else {"num_fewshot": shots}),
            "generation_kwargs": _sampling(benchmark),
            "metadata": {"version": __version__, "model": benchmark.manifest.model, "graders": [*score.graders]},
        },
        "versions": f"reasoning-harness {__version__}",
        **({} if shots is None else {"n-shot": shots}),
        "higher_is_better": {METRIC: True, "acc": True},
        "n-samples": {"original": in_data or len(benchmark.questions), "effective": score.n_questions},
        "reasoning_harness": uncertainty(score),
    }


def _shots(benchmark: ExportedBenchmark, card: Card | None) -> int | None:
    """Number of worked examples in the prompt; None for an unknown prompt, or for another tool's outputs."""
    name, own = benchmark.record.identity.get("prompt"), () if card is None else card.prompts
    known = prompts.PROMPTS | {prompt.name: prompt for prompt in own}
    return known[name].n_examples if name in known and not benchmark.record.imported else None


def _sampling(benchmark: ExportedBenchmark) -> dict[str, Any]:
    """The sampling settings that were sent, under our names."""
    sampling = benchmark.record.identity.get("sampling") or {}
    return {name: value for name, value in sampling.items() if value is not None}


def _config(benchmark: ExportedBenchmark) -> dict[str, Any]:
    """How the model was queried. The address is omitted."""
    identity, model = benchmark.record.identity, benchmark.manifest.model
    is_text = any(question.prompt for question in benchmark.questions.values())
    return {
        "model": "local-completions" if is_text else "local-chat-completions",
        "model_args": {"model": model},
        "batch_size": None,
        "limit": None,
        "gen_kwargs": _sampling(benchmark),
        "random_seed": identity.get("seed"),
    }


def _samples(benchmark: ExportedBenchmark, path: Path) -> File:
    """Write a line for each question that has samples."""
    n = 0
    with replacing(path) as file:
        for number, (question, rows) in enumerate(benchmark.by_question()):
            file.write(json_line(_line(number, question, rows, _sampling(benchmark))))
            n += 1
    return File(path, n)


def _line(number: int, question: Question, rows: Sequence[SampleRow], sampling: dict[str, Any]) -> dict[str, Any]:
    """The line of a question: the replies to it, and the mean of their grades; ungraded replies are not included in the
    mean."""
    doc = {"question_id": question.question_id, "question": question.last_turn, "answer": question.references}
    messages = [{"role": message.role, "content": message.content} for message in question.messages]
    sent = question.prompt or codec.encode_strictly(messages).decode()
    target = question.references[0] if question.references else ""
    graded = [row.grade for row in rows if row.grade is not None]
    return {
        "doc_id": number,
        "doc": doc,
        "target": target,
        "arguments": {"gen_args_0": {"arg_0": sent, "arg_1": sampling}},
        "resps": [[row.sample.text or "" for row in rows]],
        "filtered_resps": [(row.grade and row.grade.extracted) or "" for row in rows],
        "filter": "none",
        "metrics": [METRIC],
        METRIC: sum(grade.counted for grade in graded) / len(graded) if graded else None,
        "doc_hash": _hash(codec.encode_strictly(doc).decode()),
        "prompt_hash": _hash(sent),
        "target_hash": _hash(target),
    }


def _hash(text: str) -> str:
    return hashlib.sha256(without_lone_surrogates(text).encode()).hexdigest()


EXPORTER = Exporter(kind="results", write=lm_eval, withholds=False)
