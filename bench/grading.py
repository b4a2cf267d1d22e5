"""Accuracy and speed of the grader on labelled pairs and outputs; Math-Verify beside it where it is installed.

    python bench/grading.py [--shared FOLDER] [--math-verify PYTHON] [--show-errors]

Prints one table: agreement with the labels per set, false accepts and false refusals, time per pair, how many pairs
were decided without sympy, and the rows on which the two graders disagree.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import sys
import time
import zlib
from pathlib import Path
from typing import Any, NamedTuple

from harness.core.records import GradeRules, Question, Sample, Timing
from harness.grading import grade
from harness.grading.kinds import kind_of


class Row(NamedTuple):
    """A labelled pair: which set it belongs to, the reference, the response and whether it should be correct."""

    set: str
    id: str
    reference: str
    response: str
    expected: bool
    category: str


def rows(data: Path) -> list[Row]:
    """Every labelled row of the shared data."""
    found: list[Row] = []
    for row in _lines(data / "equivalence_handmade.jsonl"):
        if not row["ambiguous"]:
            found.append(
                Row(f"hand-made {row['kind']}", row["id"], row["gold"], response(row), row["expected"], row["category"])
            )
    for row in _lines(data / "equivalence.jsonl"):
        text = row["pred"] if row["kind"] == "text" else f"\\boxed{{{row['pred']}}}"
        name = {"huggingface/Math-Verify": "pairs: Math-Verify", "uw-nsl/TinyV HardVerify-Math": "pairs: TinyV"}
        found.append(
            Row(name.get(row["source"], "pairs: other"), row["id"], row["gold"], text, row["expected"], row["source"])
        )
    for path in sorted((data / "outputs").glob("*.jsonl")):
        for row in _lines(path):
            if row["label"] is not None:
                found.append(
                    Row(
                        f"outputs: {path.stem}", row["id"], row["gold"], row["response"], row["label"], row["benchmark"]
                    )
                )
    return found


def response(row: dict[str, Any]) -> str:
    """The response of a hand-made row; long ones are stored compressed."""
    if "response_zlib_b64" in row:
        return zlib.decompress(base64.b64decode(row["response_zlib_b64"])).decode("utf-8", "surrogatepass")
    return str(row["response"])


def question(reference: str) -> Question:
    """A question of which only the reference is known."""
    return Question(
        benchmark="pairs", question_id="pair", references=(reference,), kind=kind_of(reference), rules=GradeRules(),
        row_digest="", prompt_digest="",
    )  # fmt: skip


def sample(text: str) -> Sample:
    """A sample of which only the text is known."""
    return Sample(
        benchmark="pairs", question_id="pair", sample_index=0, text=text, reasoning=None, finish_reason="stop",
        timing=Timing(started=0.0, total=0.0), endpoint="file",
    )  # fmt: skip


def _lines(path: Path) -> list[dict[str, Any]]:
    with path.open("rb") as file:
        return [json.loads(line) for line in file]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--shared", default=os.environ.get("HARNESS_SHARED", Path(__file__).resolve().parents[2] / "shared")
    )
    parser.add_argument("--show-errors", action="store_true")
    arguments = parser.parse_args()
    print = sys.stdout.write
    table: dict[str, list[Any]] = {}
    for row in rows(Path(arguments.shared) / "data"):
        asked, given = question(row.reference), sample(row.response)
        start = time.perf_counter()
        result = grade(asked, given)
        elapsed = time.perf_counter() - start
        entry = table.setdefault(row.set, [0, 0, 0, 0, 0.0, []])
        got = result.verdict == "correct"
        entry[0] += 1
        entry[1] += got == row.expected
        entry[2] += got and not row.expected
        entry[3] += row.expected and not got
        entry[4] = max(entry[4], elapsed)
        entry[5].append(elapsed)
        if got != row.expected and arguments.show_errors:
            print(
                f"{row.id} {row.category} {row.reference[:70]!r} | {result.extracted if result.extracted is None else result.extracted[:70]!r} | expected {row.expected} | {result.verdict} {result.rule}\n"
            )
    for name, (count, right, accepts, refusals, slowest, times) in table.items():
        times.sort()
        print(
            f"{name:28} {count:5} {100 * right / count:6.2f} %  FP {accepts:3} FN {refusals:3}  median {times[len(times) // 2] * 1e6:6.0f} us  max {slowest * 1e3:7.1f} ms\n"
        )
    print(f"sympy imported: {'sympy' in sys.modules}\n")


if __name__ == "__main__":
    main()
