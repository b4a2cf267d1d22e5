"""Readers of tools whose outputs are a folder of files, or one JSON value: see `formats` for what a reader does.

format                   files                                                            fields
nemo_skills, sgl_eval    a folder with `output-rs0.jsonl`, `output-rs1.jsonl` …, one for  `problem`, `generation`,
                         each sample of all questions                                     `expected_answer`
opencompass              `predictions/<model>/<set>.json`, a mapping by number            `origin_prompt`, `gold`,
                                                                                          `prediction`
evalscope                `reviews/<model>/<set>.jsonl` (version 1)                        `input`, `target`,
                                                                                          `sample_score`
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from harness.benchmarks.sources import tables
from harness.benchmarks.sources.tables import Row
from harness.core.errors import UsageError
from harness.core.files import open_named
from harness.core.inert import visible
from harness.core.records import UNSTATED_REASON
from harness.foreign import cells
from harness.foreign.formats import OutputRow, Response

_RS = re.compile(r"output-rs(\d{1,6})\.jsonl(-async)?")
"""The name of a file of NeMo-Skills; an unfinished file ends in -async, and its rows are in the order of their end."""

_PARTED = re.compile(r"(.+)_\d{1,6}\.json")
"""The name of a part of a set's predictions, as OpenCompass divides them."""

_BY_NUMBER = re.compile(rb'\s*\{\s*"\d{1,9}"\s*:\s*\{')
_EVALSCOPE_USER = re.compile(r"\A\*\*User\*\*:\s*")
_ROLES = ("HUMAN", "human", "user")


def nemo_skills(path: Path) -> Iterator[OutputRow]:
    """Read a folder of `output-rs*.jsonl`, or one such file; the number in a file's name is that of its samples."""
    files = numbered_files(path) if path.is_dir() else [(_sample_number(path), path)]
    for number, file in files:
        positions = set()
        for row in tables.stream(file, responses=True):
            cells.require_columns(row, ("generation", "expected_answer", "problem"), "NeMo-Skills")
            # A resumed generation may have written a row of its unfinished file again.
            position = row.value.get("_async_position", row.where)
            if position in positions:
                continue
            positions.add(position)
            response = Response(
                cells.text_or_none(row.value["generation"]),
                finish_reason=cells.text_or_none(row.value.get("finish_reason")) or UNSTATED_REASON,
                completion_tokens=cells.count_or_none(row.value.get("num_generated_tokens")),
                index=number,
            )
            yield OutputRow(
                row.where,
                [response],
                question=cells.text_or_none(row.value["problem"]),
                answer=row.value["expected_answer"],
                question_id=cells.id_of(row.value.get("id", row.value.get("unique_id"))),
            )


def opencompass(path: Path) -> Iterator[OutputRow]:
    """Read a file of predictions of OpenCompass; each prediction is a text or a list of texts. Raises `UsageError`."""
    shown = visible(str(path))
    value = tables.parse_json(cells.decode_file(path), shown)
    rows = value if isinstance(value, dict) else {}
    if not rows:
        raise UsageError(f"{shown} is no file of OpenCompass: expected an object with a prediction for each number")
    for number, row in rows.items():
        where = f"{shown}:{visible(number, 20)}"
        if not isinstance(row, dict) or "prediction" not in row or "gold" not in row:
            raise UsageError(f"{where} is no prediction of OpenCompass: it needs 'prediction' and 'gold'")
        predictions = row["prediction"] if isinstance(row["prediction"], list) else [row["prediction"]]
        yield OutputRow(
            where,
            [Response(cells.text_or_none(text)) for text in predictions],
            question=_last_user_turn(row.get("origin_prompt")),
            answer=row["gold"],
            question_id=number,
        )


def is_by_number(path: Path) -> bool:
    """Whether a file begins as OpenCompass's files do, a mapping of numbers to objects; no other format does."""
    if path.suffix != ".json" or not path.is_file():
        return False
    try:
        with open_named(path) as file:
            return _BY_NUMBER.match(file.read(1024)) is not None
    except OSError:
        return False  # the reader of the file will report it


def evalscope(rows: Iterable[Row]) -> Iterator[OutputRow]:
    """Read reviews of EvalScope. The question's id is `group_id` if it was asked several times, else `index`.

    A resumed evaluation may have written a review again: the first of an `index` counts. The prompt is the text `input`
    behind `**User**: `, or in newer files the user's message among `messages`.
    """
    seen = set()
    for row in rows:
        outer = row.value.get("sample_score")
        score = outer.get("score") if isinstance(outer, dict) else None
        if not isinstance(outer, dict) or not isinstance(score, dict) or "target" not in row.value:
            raise UsageError(f"{row.where} is no review of EvalScope: it needs 'target' and 'sample_score'")
        group, index = outer.get("group_id"), str(row.value.get("index", row.where))
        if index in seen:
            continue
        seen.add(index)
        asked = cells.text_or_none(row.value.get("input"))
        yield OutputRow(
            row.where,
            [Response(cells.text_or_none(score.get("prediction")))],
            question=_last_user_turn(row.value.get("messages")) if asked is None else _EVALSCOPE_USER.sub("", asked),
            answer=row.value["target"],
            question_id=index if group is None else str(group),
        )


def is_numbered(path: Path) -> bool:
    """Whether `path` is a file `output-rs*.jsonl` of NeMo-Skills, or a folder with such files."""
    files = path.iterdir() if path.is_dir() else [path]
    return any(_sample_number(file) is not None for file in files)


def lacks(path: Path) -> list[str]:
    """Sentences on what the outputs at `path` may lack: parts beside the file, and files that are not finished."""
    parted = _PARTED.fullmatch(path.name)
    beside = [] if parted is None else [p.name for p in path.parent.glob("*.json") if _is_part_of(p, parted[1])]
    said = []
    if len(beside) > 1:
        listed = ", ".join(visible(name, 60) for name in sorted(beside)[:20])
        said.append(f"the set is in {len(beside)} parts ({listed}), and only {visible(path.name, 60)} is read")
    files = [file for _, file in numbered_files(path)] if path.is_dir() else [path]
    unfinished = [visible(file.name, 60) for file in files if file.name.endswith("-async")]
    if unfinished:
        said.append(f"NeMo-Skills has not finished {', '.join(unfinished)}: samples are missing")
    return said


def _is_part_of(path: Path, stem: str) -> bool:
    parted = _PARTED.fullmatch(path.name)
    return parted is not None and parted[1] == stem and is_by_number(path)


def numbered_files(folder: Path) -> list[tuple[int | None, Path]]:
    """(number, file) of each `output-rs*.jsonl` in a folder, by number; of a number's files the finished one.

    Raises `UsageError` if there is none.
    """
    files: dict[int | None, Path] = {}
    for path in sorted(folder.iterdir()):  # `.jsonl` stands before `.jsonl-async`
        if (number := _sample_number(path)) is not None:
            files.setdefault(number, path)
    if not files:
        raise UsageError(f"{visible(str(folder))} holds no output-rs0.jsonl …, which NeMo-Skills writes")
    return sorted(files.items(), key=lambda item: item[0] or 0)


def _sample_number(path: Path) -> int | None:
    named = _RS.fullmatch(path.name)
    return int(named[1]) if named else None


def _last_user_turn(value: Any) -> str | None:
    """The last message of the user in a prompt; a prompt that is a text stays as it is."""
    if isinstance(value, list):
        turns = [turn for turn in value if isinstance(turn, dict) and turn.get("role") in _ROLES]
        return cells.text_or_none(turns[-1].get("prompt", turns[-1].get("content"))) if turns else None
    return cells.text_or_none(value)
