"""ShareGPT: conversations, in LLaMA-Factory's format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.core.files import write_unsynced
from harness.core.images import ImageFolder
from harness.exports import ExportedBenchmark, Exporter, File, SampleRow
from harness.exports.selection import conversation, later_turns, llama_factory

_ROLES = {"user": "human", "assistant": "gpt"}
"""Our role → ShareGPT's."""


def sharegpt(benchmarks: Sequence[ExportedBenchmark], out: Path) -> list[File]:
    """Write lines with `conversations` (objects with `from` and `value`) and `system`; for questions with images, also
    `images`, the paths of their copies, whose positions in the texts are marked `<image>`.
    """
    path_of = _copied_images(benchmarks, out)

    def line(row: SampleRow, reply: str) -> dict[str, Any]:
        system, turns = conversation(row.question, image="<image>")
        messages = [
            {"from": _ROLES[role], "value": text} for role, text in (*turns, *later_turns(row), ("assistant", reply))
        ]
        shown = {"images": [path_of[image.sha256] for image in row.question.images]} if path_of else {}
        return {"conversations": messages, "system": system, **shown}

    columns = {"messages": "conversations", "system": "system"} | ({"images": "images"} if path_of else {})
    return llama_factory(benchmarks, out, line, {"formatting": "sharegpt", "columns": columns})


def _copied_images(benchmarks: Sequence[ExportedBenchmark], out: Path) -> dict[str, str]:
    """Checksum → path below `out` of each image, which is copied there."""
    paths = {}
    for benchmark in benchmarks:
        folder = ImageFolder(benchmark.folder.benchmark(benchmark.name).images)
        for name in {image.sha256 for question in benchmark.questions.values() for image in question.images}:
            paths[name] = f"images/{folder.facts(name).file_name}"
            write_unsynced(out / paths[name], folder.read(name))
    return paths


EXPORTER = Exporter(kind="training", write=sharegpt, holds_images=True)
