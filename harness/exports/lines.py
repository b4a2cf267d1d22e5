"""Functions for exporters of JSON lines, which write a file for each benchmark with a line for each chosen sample."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from harness.core import codec
from harness.core.files import replacing, write_atomically
from harness.core.inert import safe_name
from harness.core.records import Question
from harness.exports.choice import ExportedBenchmark, File, SampleRow, json_line, reply_text

Line = Callable[[SampleRow, str], dict[str, Any]]
"""A function of (sample, its reply as one text) that returns the object of the sample's line."""


def llama_factory(benchmarks: Sequence[ExportedBenchmark], out: Path, line: Line, form: dict[str, Any]) -> list[File]:
    """Write a file for each benchmark, and `dataset_info.json`, by which LLaMA-Factory finds the files; return them.

    line: makes the object of each line. form: the fields of `dataset_info.json` that describe the layout of a file.
    """
    files = [training_file(benchmark, out, line) for benchmark in benchmarks]
    info = {file.path.stem: {"file_name": file.path.name, **form} for file in files}
    write_atomically(out / "dataset_info.json", codec.pretty(info))
    return [*files, File(out / "dataset_info.json")]


def training_file(benchmark: ExportedBenchmark, out: Path, line: Line) -> File:
    """Write the benchmark's file, with a line for each chosen sample."""
    reasoning = benchmark.choice.reasoning
    rows = (line(row, reply_text(row.sample, reasoning=reasoning)) for row in benchmark.rows())
    return lines_file(benchmark, out, rows)


def lines_file(
    benchmark: ExportedBenchmark, out: Path, values: Iterable[dict[str, Any]], *, strict: bool = True
) -> File:
    """Write the benchmark's file in the folder `out`, with each value as a line of JSON (`json_line`)."""
    path, n = out / f"{safe_name(benchmark.name)}.jsonl", 0
    with replacing(path) as file:
        for value in values:
            file.write(json_line(value, strict=strict))
            n += 1
    return File(path, n)


def conversation(question: Question) -> tuple[str, list[tuple[str, str]]]:
    """Split a question into its system prompt and its other messages (role, text).

    The system prompt is empty if there is none. A prompt without roles is one user message.
    """
    if not question.messages:
        return "", [("user", question.prompt)]
    messages = [(message.role, message.content) for message in question.messages]
    # Formats of training data have one place for a system prompt, before the turns.
    system = "\n\n".join(text for role, text in messages if role == "system")
    return system, [(role, text) for role, text in messages if role != "system"]
