"""Files of JSON lines, one a benchmark: a line a sample, made of what was asked and the reply."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.core import codec
from harness.core.files import replacing, write_atomically
from harness.core.inert import safe_name
from harness.core.records import Question
from harness.exports.choice import ExportedBenchmark, File, SampleRow, json_line, whole, written

Line = Callable[[SampleRow, str], dict[str, Any]]
"""A line from a sample and its reply as one text."""


def llama_factory(benchmarks: Sequence[ExportedBenchmark], out: Path, line: Line, form: dict[str, Any]) -> list[File]:
    """A file a benchmark, and `dataset_info.json` beside them, by which LLaMA-Factory finds each and knows its form."""
    files = [training_file(benchmark, out, line) for benchmark in benchmarks]
    info = {file.path.stem: {"file_name": file.path.name, **form} for file in files}
    write_atomically(out / "dataset_info.json", codec.pretty(info))
    return [*files, File(out / "dataset_info.json")]


def training_file(benchmark: ExportedBenchmark, out: Path, line: Line) -> File:
    """A line for each chosen sample whose reply is not empty."""

    def values() -> Iterator[dict[str, Any]]:
        for row in benchmark.rows():
            reply = whole(written(row.sample, reasoning=benchmark.choice.reasoning))
            if reply:  # an empty reply teaches nothing
                yield line(row, reply)

    return lines_file(benchmark, out, values())


def lines_file(benchmark: ExportedBenchmark, out: Path, values: Iterable[dict[str, Any]]) -> File:
    """The values as the lines of the benchmark's file."""
    path, n = out / f"{safe_name(benchmark.name)}.jsonl", 0
    with replacing(path) as file:
        for value in values:
            file.write(json_line(value))
            n += 1
    return File(path, n)


def conversation(question: Question) -> tuple[str, list[tuple[str, str]]]:
    """(system prompt, turns of user and assistant up to the question); a plain text is one turn of the user."""
    if not question.messages:
        return "", [("user", whole(question.prompt))]
    messages = [(message.role, whole(message.content)) for message in question.messages]
    system = "\n\n".join(text for role, text in messages if role == "system")
    return system, [(role, text) for role, text in messages if role != "system"]
