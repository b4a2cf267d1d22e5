"""Samples to store, and a reader of journals that shares no code with the one under test."""

from __future__ import annotations

import json
import zlib
from typing import Any

from harness.core.records import Key, Sample, Timing, Usage

BENCHMARK = "AIME 2024"


def sample(question_id: str = "q", sample_index: int = 0, text: str | None = "so 42", **fields: Any) -> Sample:
    """A finished sample; short, so that tests over every byte stay quick."""
    return Sample(
        benchmark=fields.pop("benchmark", BENCHMARK),
        question_id=question_id,
        sample_index=sample_index,
        text=text,
        reasoning=fields.pop("reasoning", None),
        finish_reason=fields.pop("finish_reason", "stop"),
        usage=fields.pop("usage", Usage(completion_tokens=3)),
        timing=fields.pop("timing", Timing(started=1.5, total=0.25)),
        endpoint=fields.pop("endpoint", "e"),
        **fields,
    )


def intact_lines(data: bytes) -> list[dict[str, Any]]:
    """The records that count in a journal's bytes, by json and zlib alone."""
    records = []
    for line in data.split(b"\n"):
        body, mark, rest = line.rpartition(b',"crc":"')
        if mark and rest.endswith(b'"}') and len(rest) == 10 and b"%08x" % zlib.crc32(body) == rest[:8]:
            records.append(json.loads(line))
    return records


def intact_texts(data: bytes) -> dict[Key, str | None]:
    """The text of the first intact record of each key."""
    texts: dict[Key, str | None] = {}
    for record in intact_lines(data):
        texts.setdefault(Key(record["question_id"], record["sample_index"]), record["text"])
    return texts
