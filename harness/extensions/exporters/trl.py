"""Prompts and completions, in TRL's format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.exports import ExportedBenchmark, Exporter, File, SampleRow
from harness.exports.selection import later_turns, training_file


def trl(benchmarks: Sequence[ExportedBenchmark], out: Path) -> list[File]:
    """Write lines with `prompt` and `completion` (conversations, or texts if the run used the completions API), and
    with `solution`, from which `harness.rewards` and open-r1's rewards read the reference."""

    def line(row: SampleRow, reply: str) -> dict[str, Any]:
        """One sample as a line. A prompt of messages is written as a conversation, any other prompt as text."""
        question, solution = row.question, next(iter(row.question.references), "")
        if not question.messages:
            return {"prompt": question.prompt, "completion": reply, "solution": solution}
        said = [*((message.role, message.content) for message in question.messages), *later_turns(row)]
        prompt = [{"role": role, "content": text} for role, text in said]
        return {"prompt": prompt, "completion": [{"role": "assistant", "content": reply}], "solution": solution}

    return [training_file(benchmark, out, line) for benchmark in benchmarks]


EXPORTER = Exporter(kind="training", write=trl)
