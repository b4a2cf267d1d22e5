"""Alpaca: instructions with their history, in LLaMA-Factory's format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.exports import ExportedBenchmark, Exporter, File, SampleRow
from harness.exports.selection import conversation, later_turns, llama_factory


def alpaca(benchmarks: Sequence[ExportedBenchmark], out: Path) -> list[File]:
    """Write lines with `instruction`, `input` (empty), `output`, `system`, and `history` (worked examples)."""

    def line(row: SampleRow, reply: str) -> dict[str, Any]:
        system, turns = conversation(row.question)
        texts = [text for _, text in (*turns, *later_turns(row))]
        # All turns but the last one, as pairs of a user's message and its answer.
        history = [list(pair) for pair in zip(texts[:-1:2], texts[1:-1:2], strict=True)]
        return {"instruction": texts[-1], "input": "", "output": reply, "system": system, "history": history}

    columns = {
        "prompt": "instruction",
        "query": "input",
        "response": "output",
        "system": "system",
        "history": "history",
    }
    return llama_factory(benchmarks, out, line, {"columns": columns})


EXPORTER = Exporter(kind="training", write=alpaca)
