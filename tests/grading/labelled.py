"""All labelled pairs at hand as (reference, response, correct): those of the tests, and the shared sets."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from tests.grading.pairs import PAIRS
from tests.grading.responses import RESPONSES
from tests.grading.twins import TWINS


class Labelled(NamedTuple):
    """Is `response` correct, given `reference`? name: where the row comes from."""

    name: str
    reference: str
    response: str
    correct: bool


def own() -> list[Labelled]:
    """The pairs and responses of the tests."""
    rows = [
        Labelled(f"{category} {index}", reference, f"\\boxed{{{answer}}}", correct)
        for category, table in (PAIRS | TWINS).items()
        for index, (reference, answer, correct) in enumerate(table)
    ]
    return rows + [
        Labelled(f"response {category} {index}", *row)
        for category, table in RESPONSES.items()
        for index, row in enumerate(table)
    ]


def hand_made(data: Path, kind: str) -> list[Labelled]:
    """The unambiguous hand-made rows of one kind: equality, extraction, hostile."""
    rows = [row for row in _rows(data / "equivalence_handmade.jsonl") if row["kind"] == kind and not row["ambiguous"]]
    return [Labelled(row["id"], row["gold"], _response(row), row["expected"]) for row in rows]


def public(data: Path, source: str = "") -> list[Labelled]:
    """Pairs of public graders' tests."""
    return [
        Labelled(
            row["id"],
            row["gold"],
            row["pred"] if row["kind"] == "text" else f"\\boxed{{{row['pred']}}}",
            row["expected"],
        )
        for row in _rows(data / "equivalence.jsonl")
        if row["source"].startswith(source)
    ]


def second_round(data: Path) -> list[Labelled]:
    """The open half of the second collection, its unambiguous rows; the names of our own begin with "own"."""
    return [
        Labelled(f"{row['source']} {row['id']}", row["gold"], row["response"], row["label"])
        for row in _rows(data / "equivalence_2.jsonl")
        if not row["ambiguous"]
    ]


def third_round(data: Path) -> list[Labelled]:
    """Our own pairs in 28 kinds, the unambiguous ones."""
    return [
        Labelled(f"{row['source']} {row['id']}", row["gold"], row["response"], row["label"])
        for row in _rows(data / "equivalence_3.jsonl")
        if not row["ambiguous"]
    ]


def outputs(data: Path) -> list[Labelled]:
    """Real outputs of models with a label."""
    return [
        Labelled(row["id"], row["gold"], row["response"], row["label"])
        for path in sorted((data / "outputs").glob("*.jsonl"))
        for row in _rows(path)
        if row["label"] is not None
    ]


def _response(row: dict[str, Any]) -> str:
    packed = row.get("response_zlib_b64")
    return zlib.decompress(base64.b64decode(packed)).decode("utf-8", "surrogatepass") if packed else row["response"]


def _rows(path: Path) -> list[dict[str, Any]]:
    with path.open("rb") as file:
        return [json.loads(line) for line in file]
