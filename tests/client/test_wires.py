"""The replies of ../shared/dialects as real servers send them: what is read of each, however its bytes are split.

Where that folder is missing, these tests are left out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.client.protocol.failures import failure_of_status
from harness.client.protocol.reply import Reply, RequestFailed
from harness.client.protocol.sse import ReplyParser
from harness.client.wires.table import wire_of

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "dialects"
LINES = FOLDER / "expected.jsonl"
CASES = [json.loads(line) for line in LINES.read_text("utf-8").splitlines()] if LINES.exists() else []
COUNTS = ("prompt", "completion", "reasoning", "cached")
NOTES = {
    "r07": "filter", "r08": "refusal", "r17": "brand_new", "r22": "tool call", "r23": "code_interpreter_call",
    "r26": "text after", "m10": "refusal", "m13": "no [DONE]", "m18": "sparkle_delta", "m20": "tool call",
    "m22": "pause_turn",
}  # fmt: skip


def read(api: str, pieces: list[bytes], status: int = 200) -> Reply | RequestFailed:
    """What comes of a body that arrives in these pieces."""
    if status != 200:
        return failure_of_status(status, b"".join(pieces))
    parser = ReplyParser(wire_of(api), started=0.0, started_utc=0.0, max_body_bytes=1 << 24)
    try:
        for piece in pieces:
            parser.feed(piece, 1.0)
        return parser.finish(1.0)
    except RequestFailed as failure:
        return failure


def outcome(got: Reply | RequestFailed) -> dict[str, Any]:
    """It in the words of the file."""
    if isinstance(got, RequestFailed):
        return {"outcome": "failure", "kind": got.kind}
    usage = got.usage
    stated = (usage.prompt_tokens, usage.completion_tokens, usage.reasoning_tokens, usage.cached_tokens)
    counts = dict(zip(COUNTS, stated, strict=True))
    said = {"text": got.text, "reasoning": got.reasoning, "finish": got.finish_reason}
    return {"outcome": "reply", **said, "usage": counts if any(counts.values()) else None}


@pytest.mark.skipif(not CASES, reason="there is no ../shared/dialects")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["file"])
def test_a_reply_is_read_as_it_must_be_however_it_is_split(case: dict[str, Any]) -> None:
    data, status = (FOLDER / "streams" / case["file"]).read_bytes(), case.get("status", 200)
    whole = read(case["api"], [data], status)
    got = outcome(whole)
    assert got == {name: case.get(name, value) for name, value in got.items()}
    notes = getattr(whole, "notes", ())
    assert NOTES.get(case["file"][:3], "") in " ".join(notes)
    events = data.replace(b"\n\n", b"\n\n\0").split(b"\0")
    for pieces in (
        events,
        [data[i : i + 1] for i in range(len(data))],
        *([data[:i], data[i:]] for i in range(len(data))),
    ):
        again = read(case["api"], pieces, status)
        assert (outcome(again), getattr(again, "notes", ())) == (got, notes)
