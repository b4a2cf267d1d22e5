"""Inspect's `.eval` log: a zip with one JSON file for each sample (question and epoch), read by `inspect view`.

Format: version 2, as inspect_ai 0.3 writes it (inspect_ai/log/_recorders/eval.py). Its `stderr` is over questions, so
it is the question error here, followed by both intervals and the sampling error.
"""

from __future__ import annotations

import json
import math
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.core.codec import digest, without_lone_surrogates
from harness.core.files import replacing
from harness.core.images import ImageFolder
from harness.core.installation import __version__
from harness.core.records import Message, Question, SampleStep, SentCall, ToolCall
from harness.core.sanitize import safe_name
from harness.exports import ExportedBenchmark, Exporter, File, SampleRow
from harness.exports.selection import metrics_of, uncertainty
from harness.tools.table import arguments_of

SCORER = "harness"
"""Our scorer name in a log."""
PROVIDER = "openai-api"
"""Inspect's provider for any OpenAI-compatible server; a model name in a log begins with its provider."""
_STOP_REASONS = {"stop": "stop", "length": "max_tokens", "content_filter": "content_filter"}
"""Our finish reason → Inspect's."""
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can store: equal runs produce equal files


def inspect_log(benchmarks: Sequence[ExportedBenchmark], out: Path) -> list[File]:
    """Write a log for each benchmark. A sample's epoch is its index plus 1."""
    return [_write(benchmark, out / f"{safe_name(benchmark.name)}.eval") for benchmark in benchmarks]


def _write(benchmark: ExportedBenchmark, path: Path) -> File:
    """Write an Inspect log of the benchmark to `path`; return the path and the number of samples."""
    summaries: list[dict[str, Any]] = []
    with replacing(path) as file, zipfile.ZipFile(file, "w") as archive:

        def member(name: str, value: Any) -> None:
            text = without_lone_surrogates(json.dumps(value, ensure_ascii=False))
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), text, zipfile.ZIP_DEFLATED)

        for row in benchmark.rows():
            images = ImageFolder(benchmark.folder.benchmark(benchmark.name).images)
            sample = _sample(row, benchmark.manifest.model, images)
            # Inspect names members by the id; an id that would lead outside the archive's folder is changed.
            is_plain = re.fullmatch(r"[\w .:/-]+", sample["id"]) and ".." not in sample["id"]
            name = sample["id"] if is_plain else safe_name(sample["id"])
            member(f"samples/{name}_epoch_{sample['epoch']}.json", sample)
            messages = row.question.messages
            question = messages[-1].content if messages else row.question.prompt
            parts = {field: sample[field] for field in ("id", "epoch", "target", "scores", "model_usage", "total_time")}
            summaries.append({**parts, "input": question[:1000], "completed": True})
        member("summaries.json", summaries)
        ended = {"results": _results(benchmark, len(summaries)), "stats": _stats(benchmark)}
        member("header.json", {"version": 2, "status": "success", "eval": _spec(benchmark), **ended})
    return File(path, len(summaries))


def _spec(benchmark: ExportedBenchmark) -> dict[str, Any]:
    """The `eval` part of the log: task, data set, model and settings."""
    sampling = benchmark.record.identity.get("sampling") or {}
    fields = ("temperature", "top_p", "top_k", "max_tokens", "frequency_penalty", "presence_penalty")
    identifier = digest([benchmark.manifest.model, benchmark.name, benchmark.manifest.created])
    return {
        "eval_id": identifier[:22],
        "run_id": identifier[22:44],
        "created": benchmark.manifest.created,
        "task": benchmark.name,
        "task_id": digest(benchmark.name)[:22],
        "dataset": {"name": benchmark.name, "samples": len(benchmark.questions), "sample_ids": [*benchmark.questions]},
        "model": f"{PROVIDER}/{benchmark.manifest.model}",
        "model_generate_config": {name: sampling[name] for name in fields if sampling.get(name) is not None},
        "config": {"epochs": math.ceil(benchmark.record.plan.samples), "epochs_reducer": ["mean"]},
        "packages": {"reasoning-harness": __version__},
    }


def _sample(row: SampleRow, model: str, images: ImageFolder) -> dict[str, Any]:
    """The sample's JSON in a log. model: the model's name in the run, used if the server reported none. images: the
    benchmark's images.
    """
    question, sample, grade = row.question, row.sample, row.grade
    thinking = [{"type": "reasoning", "reasoning": sample.reasoning}] if sample.reasoning else []
    content = [*thinking, {"type": "text", "text": sample.text or ""}]
    reply = {"role": "assistant", "content": content, "source": "generate", "model": sample.server_model}
    reply |= {"tool_calls": _called(sample.calls)} if sample.calls else {}
    messages = [
        {"role": m.role, "content": _content(m, images), "source": "input"}
        | ({"tool_calls": _called(m.calls)} if m.calls else {})
        | ({"tool_call_id": m.call_id} if m.call_id else {})
        for m in question.messages
    ]
    of_steps = [turn for step in (sample.steps or ())[:-1] for turn in _turns(step, question)]
    usage = _usage(sample.usage.prompt_tokens, sample.usage.completion_tokens)
    answered_by = sample.server_model or model
    score = grade and {
        # Inspect's own marks for correct and incorrect (inspect_ai/scorer/_metric.py).
        "value": grade.counted if grade.points else "C" if grade.verdict == "correct" else "I",
        "answer": grade.extracted,
        "explanation": f"{grade.verdict} by the rule {grade.rule} of {grade.grader}",
        "metadata": {"verdict": grade.verdict},
    }
    choice = {"message": reply, "stop_reason": _STOP_REASONS.get(sample.finish_reason, "unknown")}
    return {
        "id": question.question_id,
        "epoch": sample.sample_index + 1,
        "input": messages or question.prompt,
        "choices": list(question.choices) or None,
        "target": question.references[0] if len(question.references) == 1 else question.references,
        "messages": [*messages, *of_steps, reply],
        "output": {"model": answered_by, "choices": [choice], "usage": usage or None, "time": sample.timing.total},
        "scores": {SCORER: score} if score else {},
        "metadata": {**question.metadata, "seed": sample.seed, "endpoint": sample.endpoint},
        "model_usage": {answered_by: usage} if usage else {},
        "started_at": datetime.fromtimestamp(sample.timing.started, UTC).isoformat(),
        "total_time": sample.timing.total,
    }


def _content(message: Message, images: ImageFolder) -> str | list[dict[str, Any]]:
    """A message's content: its text, or its parts if it shows images."""
    if not message.media:
        return message.content
    return [
        {"type": "text", "text": part} if isinstance(part, str) else {"type": "image", "image": images.url(part.sha256)}
        for part in message.parts
    ]


def _turns(step: SampleStep, question: Question) -> Iterator[dict[str, Any]]:
    """The messages of a step that another follows: the model's message, and the output of each call, or the next turn
    of the conversation.
    """
    called = _called(step.calls)
    thinking = [{"type": "reasoning", "reasoning": step.reasoning}] if step.reasoning else []
    content = [*thinking, {"type": "text", "text": step.text or ""}]
    yield {"role": "assistant", "content": content, "source": "generate"} | ({"tool_calls": called} if called else {})
    for call in step.calls:
        yield {"role": "tool", "content": call.output, "tool_call_id": call.id, "function": call.name}
    if step.turn and not called:
        for message in (question.turns or ())[step.turn].messages:
            yield {"role": message.role, "content": message.content, "source": "input"}


def _called(calls: Iterable[ToolCall | SentCall]) -> list[dict[str, Any]]:
    return [
        {"id": call.id, "function": call.name, "arguments": arguments_of(call.name, call.arguments), "type": "function"}
        for call in calls
    ]


def _usage(prompt: int | None, completion: int | None) -> dict[str, int]:
    """Token counts under Inspect's names; empty if the server reported none."""
    counts = {"input_tokens": prompt or 0, "output_tokens": completion or 0}
    return {} if prompt is None and completion is None else counts | {"total_tokens": sum(counts.values())}


def _results(benchmark: ExportedBenchmark, n: int) -> dict[str, Any]:
    """The `results` part of the log: the score's metrics. n: number of samples."""
    score = benchmark.score
    values = {name: estimate.value for name, estimate in metrics_of(score).items()}
    values |= {} if score.question_error is None else {"stderr": score.question_error}
    metrics = {name: {"name": name, "value": value} for name, value in values.items()}
    record = {"name": SCORER, "scorer": SCORER, "reducer": "mean", "metrics": metrics, "metadata": uncertainty(score)}
    return {"total_samples": n + score.n_missing, "completed_samples": n, "scores": [record]}


def _stats(benchmark: ExportedBenchmark) -> dict[str, Any]:
    """The `stats` part of the log: times and tokens."""
    if (work := benchmark.score.workload) is None:
        return dict.fromkeys(("started_at", "completed_at"), benchmark.manifest.created)
    moments = {"started_at": work.started, "completed_at": work.ended}
    usage = _usage(work.prompt_tokens, work.completion_tokens)
    times = {name: datetime.fromtimestamp(moment, UTC).isoformat() for name, moment in moments.items()}
    return {**times, "model_usage": {benchmark.manifest.model: usage}}


EXPORTER = Exporter(kind="results", write=inspect_log)
