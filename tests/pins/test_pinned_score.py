"""Pins of `harness score` and `harness.score`: grades, scores and `--json` of run folders and of files."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.pins import stored
from tests.pins.stage import Scene, Stage, name_of, plain, without

PROSE = "the process by which green plants turn light into sugar"


def both_doors(stage: Stage, source: str, words: list[str], keywords: dict[str, Any]) -> None:
    """The same scoring by the command and by Python, which takes the grades that are there: equal records."""
    printed = stage.command("score", source, "--workers", "1", "--json", *words)
    assert printed.code == 0, printed.err
    scores = stage.python("score", source, workers=1, **keywords)
    stage.alike(without(printed.json, "run"), [plain(score) for score in scores])


def a_run_folder(stage: Stage) -> None:
    """Grades, scores and what is printed of a stored run."""
    stored.copy("first", stage.folder)
    both_doors(stage, "first", [], {"fresh": True})
    stage.file("first/sums/grades.jsonl")
    stage.file("first/sums/scores.json")
    stage.command("score", "first", "--workers", "1")
    stage.tree("first")


def other_ks(stage: Stage) -> None:
    """Options that change what is counted."""
    stored.copy("first", stage.folder)
    words = ["--k", "3", "--answer-from-reasoning", "--no-salvaged"]
    both_doors(stage, "first", words, {"k": 3, "answer_from_reasoning": True, "salvaged": False})


def a_file_of_outputs(stage: Stage) -> None:
    """A file with columns of its own, and the grades written beside."""
    rows = [
        {"question": "why?", "answer": PROSE, "gen": [rf"\boxed{{\text{{{PROSE}}}}}", r"\boxed{\text{they burn it}}"]},
        {"question": "2+2", "answer": "4", "gen": [r"\boxed{4}", r"\boxed{5}"]},
        {"question": "3/2", "answer": "1.5", "gen": [r"\boxed{\frac{3}{2}}", "I do not know"]},
    ]
    (stage.folder / "theirs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    words = ["--response-key", "gen", "--answer-key", "answer", "--question-key", "question", "--out", "grades.jsonl"]
    words += ["--written-by", "org/theirs", "--repeats", "samples"]
    keywords = {
        "response_key": "gen", "answer_key": "answer", "question_key": "question", "out": "grades.jsonl",
        "written_by": "org/theirs", "repeats": "samples",
    }  # fmt: skip
    both_doors(stage, "theirs.jsonl", words, keywords)
    stage.file("grades.jsonl")
    stage.tree(".")


def llmeval_rows(stage: Stage) -> None:
    """Rows that another tool wrote, a line a sample, known by their shape."""
    rows = [
        {"prompt": f"{n}+{n}", "answer": str(2 * n), "gen": rf"\boxed{{{2 * n + (i == n)}}}"}
        for n in range(3)
        for i in range(2)
    ]
    (stage.folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    both_doors(stage, "rows.jsonl", ["--from", "llmeval"], {"tool": "llmeval"})


def a_card_by_its_questions(stage: Stage) -> None:
    """A file that answers a card's questions is graded by the card's references."""
    rows = [
        {"question": "What is 15 - 6?", "answer": "9", "response": r"\boxed{9}"},
        {"question": "What is 15 - 6?", "answer": "9", "response": r"\boxed{8}"},
    ]
    (stage.folder / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    words = ["--benchmark", "demo", "--response-key", "response", "--question-key", "question"]
    keywords = {"benchmark": "demo", "response_key": "response", "question_key": "question"}
    both_doors(stage, "mine.jsonl", words, keywords)


def shards(stage: Stage) -> None:
    """Shards are joined in --out and scored as one run."""
    for name in ("shard-1", "shard-2"):
        stored.copy(name, stage.folder)
    printed = stage.command("score", "shard-1", "shard-2", "--out", "joined", "--workers", "1", "--json")
    merged = stage.python("merge", ["shard-1", "shard-2"], out="by-python")
    stage.alike(without(printed.json, "run"), [plain(score) for score in stage.python("score", merged, workers=1)])


def refusals(stage: Stage) -> None:
    """Wrong options are one sentence, in the words of each door.

    Left out, for the issue changes them: `repeats` with a run folder, which the command refuses and Python ignores, and
    `workers` above the command's bound, which Python accepts.
    """
    stored.copy("first", stage.folder)
    (stage.folder / "theirs.jsonl").write_text('{"gen": "1", "answer": "1"}\n', "utf-8")
    for words, arguments, keywords in (
        (["nowhere"], ("nowhere",), {}),
        (["first", "--workers", "0"], ("first",), {"workers": 0}),
        (["first", "--deadline", "0"], ("first",), {"deadline": 0.0}),
        (["first", "--k", "0"], ("first",), {"k": 0}),
        (["first", "--k", "9"], ("first",), {"k": 9}),
        (["first", "--response-key", "gen"], ("first",), {"response_key": "gen"}),
        (["theirs.jsonl", "--response-key", "none"], ("theirs.jsonl",), {"response_key": "none"}),
        (["theirs.jsonl", "--from", "nobody"], ("theirs.jsonl",), {"tool": "nobody"}),
        (["first", "--track", "nobody"], ("first",), {"track": "nobody"}),
        (["first", "--also-python", "python"], ("first",), {"also_python": "python"}),
    ):
        stage.command("score", *words, show_errors=True)
        stage.python("score", *arguments, **keywords)  # type: ignore[arg-type]


SCENES: tuple[Scene, ...] = (
    a_run_folder, other_ks, a_file_of_outputs, llmeval_rows, a_card_by_its_questions, shards, refusals
)  # fmt: skip


@pytest.mark.parametrize("scene", SCENES, ids=name_of)
def test_pinned(scene: Scene, hold: Callable[[Scene], None]) -> None:
    hold(scene)
