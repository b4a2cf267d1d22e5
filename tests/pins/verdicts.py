"""Pinned verdicts: pairs of a reference and a reply, as data, graded by `harness.score` and `harness.grade`.

Each file of `packages/answers/tests/verdicts` is a set. A line holds `reference`, `reply`, `verdict` (what is right:
correct, wrong, or undecided where the reply proves neither) and `group`; and, where needed,

    says      what the grader says, where that is not the verdict
    options   options of `harness.grade`, such as kind or round_to_reference
    question  the question's text; more: further right answers; rules: the card's, such as `ordered: true`
    note      why the verdict is the right one

Labeled rows of others, which this repository may not hold, are graded where they are at hand; `shared.json` pins
counts of each of their sets. `python -m tests.pins.scoreboard --write` pins what the grader says now.
"""

from __future__ import annotations

import base64
import json
import tempfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import harness

FOLDER = Path(__file__).resolve().parents[2] / "packages" / "answers" / "tests" / "verdicts"
SHARED = Path(__file__).parent / "grading" / "shared.json"
MAX_SHOWN = 100
"""A longer text of a changed row is cut in its middle, in characters."""

MAX_MORE = 3
"""Further right answers that a row may have."""

CARD = f"""
name: pinned
title: Pinned verdicts
measures: verdicts
license: none
citation: none
source: {{kind: file, path: questions.jsonl}}
columns: {{question: question, answer: reference, id: id, more_answers: {[f"more_{n}" for n in range(MAX_MORE)]}}}
id_rule: column
kind: auto
prompt: boxed
samples: 1
"""

SOURCES = {
    "huggingface/Math-Verify": "Math-Verify's tests",
    "uw-nsl/TinyV HardVerify-Math": "TinyV",
    "MathCoder outputs": "MathCoder's outputs",
    "own": "own",
    "own3b": "own",
}
"""Source of a shared row → its name in a set; the rest are "others"."""


class Row(NamedTuple):
    """A labeled pair. verdict: what is right. more: the other fields of its line."""

    reference: str
    reply: str
    verdict: str
    more: dict[str, Any]

    @property
    def says(self) -> str:
        """What the grader said when the row was pinned."""
        return str(self.more.get("says", self.verdict))


class Counts(NamedTuple):
    """How the grader did on a set. accepted: rows that are not right and were called correct."""

    rows: int
    accepted: int
    right_called_wrong: int
    right_called_undecided: int


Sets = dict[str, list[Row]]
Said = dict[str, list[str]]
"""Name of a set → what the grader says of each row: correct, wrong, undecided or no_answer."""


def pinned() -> Sets:
    """The sets that the repository holds."""
    return {path.stem: [*_rows(path)] for path in sorted(FOLDER.glob("*.jsonl"))}


def _rows(path: Path) -> Iterator[Row]:
    for line in _lines(path):
        yield Row(line.pop("reference"), line.pop("reply"), line.pop("verdict"), line)


def shared(data: Path) -> Sets:
    """The unambiguous rows of others. data: the folder of shared data; what is missing there is left out."""
    sets: Sets = defaultdict(list)
    reports = data.parent / "bugs4" / "grading.jsonl"
    for path in (*sorted(data.glob("equivalence*.jsonl")), *sorted(data.glob("outputs/*.jsonl")), reports):
        for line in _lines(path) if path.exists() else ():
            label = line.get("label", line.get("expected"))
            if label is not None and not line.get("ambiguous"):
                verdict = "correct" if label in (True, "right") else "wrong"
                sets[_set_of(path, line)].append(
                    Row(line.get("gold", line.get("reference")), _reply(line), verdict, {})
                )
    return dict(sets)


def _set_of(path: Path, line: dict[str, Any]) -> str:
    if "round" in line:
        return f"reports, round {line['round']}"
    if path.parent.name == "outputs":
        return f"outputs, {path.stem}"
    if path.stem == "equivalence_handmade":
        return f"hand-made, {line['kind']}"
    source = SOURCES.get(line["source"].partition(":")[0], "others")
    return f"{path.stem}, {source}"


def _reply(line: dict[str, Any]) -> str:
    if "response_zlib_b64" in line:
        return zlib.decompress(base64.b64decode(line["response_zlib_b64"])).decode("utf-8", "surrogatepass")
    if "response" in line:
        return str(line["response"])
    return str(line["pred"]) if line["kind"] == "text" else rf"\boxed{{{line['pred']}}}"


def grade(sets: Sets) -> Said:
    """Grade all rows: those with options by `harness.grade`, the others by `harness.score`, a file for each rules."""
    rows = [row for every in sets.values() for row in every]
    files: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if "options" not in row.more:
            files[row.more.get("rules", "")].append(row)
    scored = {rules: _scored(same, rules) for rules, same in files.items()}
    said = (_alone(row) if "options" in row.more else next(scored[row.more.get("rules", "")]) for row in rows)
    return {name: [*islice(said, len(every))] for name, every in sets.items()}


def _alone(row: Row) -> str:
    return harness.grade(row.reference, row.reply, **row.more["options"]).outcome


def _scored(rows: Sequence[Row], rules: str) -> Iterator[str]:
    """Yield the verdicts that `harness.score` writes. rules: those of the card."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pinned.yaml").write_text(f"{CARD}questions: {len(rows)}\nrules: {{{rules}}}\n", "utf-8")
        _write_lines(folder / "questions.jsonl", map(_question, range(len(rows)), rows))
        _write_lines(folder / "replies.jsonl", ({"id": f"row {n}", "reply": row.reply} for n, row in enumerate(rows)))
        harness.score(
            folder / "replies.jsonl",
            benchmark=str(folder / "pinned.yaml"),
            id_key="id",
            response_key="reply",
            workers=1,
        )
        (grades,) = folder.glob("replies.jsonl.scored/*/grades.jsonl")
        said = {line["question_id"]: line["verdict"] for line in _lines(grades)}
    yield from (said[f"row {n}"] for n in range(len(rows)))


def _question(number: int, row: Row) -> dict[str, Any]:
    """The line of the table of questions."""
    more = [*row.more.get("more", ()), *[""] * MAX_MORE]
    return {
        "id": f"row {number}",
        "question": row.more.get("question", "-"),
        "reference": row.reference,
        **{f"more_{n}": more[n] for n in range(MAX_MORE)},
    }


def changes(sets: Sets, said: Said) -> list[str]:
    """A line for each row of which the grader does not say what is pinned."""
    return [
        f"{name}, {row.more['group']}: {_shown(row.reference)} beside {_shown(row.reply)}: "
        f"{row.says} is now {outcome}; right is {row.verdict}"
        for name, rows in sets.items()
        for row, outcome in zip(rows, said[name], strict=True)
        if row.says != outcome
    ]


def _shown(text: str) -> str:
    return repr(text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN // 2]} … {text[-MAX_SHOWN // 2 :]}")


def counts(rows: Sequence[Row], said: Sequence[str]) -> Counts:
    """The counts of one set."""
    pairs = Counter((row.verdict == "correct", outcome) for row, outcome in zip(rows, said, strict=True))
    undecided = pairs[True, "undecided"] + pairs[True, "no_answer"]
    return Counts(len(rows), pairs[False, "correct"], pairs[True, "wrong"], undecided)


def write(sets: Sets, said: Said) -> None:
    """Pin what the grader says of the repository's sets."""
    for name, rows in sets.items():
        _write_lines(FOLDER / f"{name}.jsonl", map(_line, rows, said[name]), escaped=False)


def _line(row: Row, outcome: str) -> dict[str, Any]:
    says = {"says": outcome} if outcome != row.verdict else {}
    rest = {key: value for key, value in row.more.items() if key != "says"}
    return {"reference": row.reference, "reply": row.reply, "verdict": row.verdict, **says, **rest}


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        yield from map(json.loads, file)


def _write_lines(path: Path, lines: Iterable[dict[str, Any]], *, escaped: bool = True) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line, ensure_ascii=escaped) + "\n" for line in lines)
