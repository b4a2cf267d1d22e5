"""ShareGPT: conversations, as LLaMA-Factory reads them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.exports import ExportedBenchmark, Exporter, File, SampleRow
from harness.exports.choice import conversation, llama_factory

_ROLES = {"user": "human", "assistant": "gpt"}
"""Our role → ShareGPT's."""


def sharegpt(benchmarks: Sequence[ExportedBenchmark], out: Path) -> list[File]:
    """Write lines with `conversations` (objects with `from` and `value`) and `system`."""

    def line(row: SampleRow, reply: str) -> dict[str, Any]:
        system, turns = conversation(row.question)
        messages = [{"from": _ROLES[role], "value": text} for role, text in (*turns, ("assistant", reply))]
        return {"conversations": messages, "system": system}

    columns = {"messages": "conversations", "system": "system"}
    return llama_factory(benchmarks, out, line, {"formatting": "sharegpt", "columns": columns})


EXPORTER = Exporter(kind="training", write=sharegpt)
