"""LLMEval's generations file, which its evaluator and `harness score` read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.core.errors import UsageError
from harness.core.records import NO_REPLY
from harness.exports import ExportedBenchmark, Exporter, File, SampleRow
from harness.exports.selection import conversation, lines_file


def llmeval(benchmarks: Sequence[ExportedBenchmark], out: Path) -> list[File]:
    """Write lines with `prompt`, `answer` and `gen` (a list of one text), and with `doc_id`, `reasoning` and the other
    fields that `harness score` reads; every text is preserved exactly."""
    files = []
    for benchmark in benchmarks:
        lines = (_generation(row, benchmark.manifest.model) for row in benchmark.rows())
        files.append(lines_file(benchmark, out, lines, strict=False))
    return files


def _generation(row: SampleRow, model: str) -> dict[str, Any]:
    """One sample as a line of LLMEval's generations. model: the run's model."""
    question, sample = row.question, row.sample
    if sample.has_verdict_only:
        raise UsageError(f"an llmeval file contains replies, but {NO_REPLY}: use csv or parquet")
    usage = {"prompt_tokens": sample.usage.prompt_tokens, "completion_tokens": sample.usage.completion_tokens}
    return {
        "doc_id": question.question_id,
        "prompt": conversation(question)[1][-1][1],
        "answer": question.references[0] if len(question.references) == 1 else list(question.references),
        "sample_index": sample.sample_index,
        "gen": [sample.text or ""],
        "reasoning": sample.reasoning,
        "finish_reason": sample.finish_reason,
        "usage": usage,
        "model": model,
    }


EXPORTER = Exporter(kind="samples", write=llmeval)
