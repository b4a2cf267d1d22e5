"""Twins: which questions are paired, what the drop is, and where it is shown.

For: harness.scoring.twins, harness.commands.twins, harness.benchmarks.drafts.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.benchmarks import catalog, questions
from harness.core.errors import UsageError
from harness.core.records import Message, Question
from harness.scoring.tally import cluster_of, tally
from harness.scoring.twins import as_one, by_original
from harness.testing import FakeServer, Request, Said, serving
from tests.scoring.graded import grade

ORIGINALS = ("a", "b", "c_1")
"""The last id has the mark in it that ends the name of a twin's original."""


def question(question_id: str, text: str = "", **metadata: Any) -> Question:
    messages = (Message(role="user", content=text),) if text else ()
    return Question(
        benchmark="b",
        question_id=question_id,
        messages=messages,
        references=("1",),
        kind="integer",
        metadata=metadata,
        row_digest=f"row of {question_id}",
        prompt_digest="",
    )


def pairs(originals: list[Question], twins: list[Question]) -> dict[str, list[str]]:
    tallies = tally(twins, [], 1).questions
    return {
        name: [item.question.question_id for item in group] for name, group in by_original(originals, tallies).items()
    }


def test_a_twin_is_paired_by_its_original_s_id_or_by_its_whole_text() -> None:
    originals = [question("7", "Solve this.\n\nAnn has 3  apples."), question("8", "Ben has 4 pears.")]
    twins = [
        question("t1", original="7"),
        question("t2", original="Ann has\n3 apples."),
        question("t3", original="Ben has 4 pears."),
    ]
    assert pairs(originals, twins) == {"7": ["t1", "t2"], "8": ["t3"]}


@pytest.mark.parametrize("name", ["9", "has", "Ben has 4 apples.", "", "   "])
def test_a_name_of_no_question_or_of_several_pairs_nothing(name: str) -> None:
    originals = [question("7", "Ann has 3 apples."), question("8", "Ben has 4 pears.")]
    assert pairs(originals, [question("t1", original=name), question("t2")]) == {}


def test_the_samples_of_all_twins_are_those_of_one_question() -> None:
    twins = [question("t1", original="7"), question("t2", original="7")]
    graded = [grade("t1", 0, "c"), grade("t1", 1, "w"), grade("t2", 0, "c"), grade("t2", 1, "c")]
    (original,) = tally([question("7")], [grade("7", 0, "c")], 1).questions
    merged = as_one(original, tally(twins, graded, 2).questions)
    assert (merged.question.question_id, merged.n, merged.planned, merged.correct) == ("7", 4, 4, 3)


def test_a_column_named_original_groups_nothing_but_twins() -> None:
    twin, original = question("t1", twin_of="b", original="7"), question("o1", original="7")
    assert [cluster_of(each) for each in (twin, original)] == ["7", "o1"]


def write_cards(folder: Path) -> None:
    rows = {
        "origs": [{"id": name, "q": f"original {name}", "a": 1} for name in ORIGINALS],
        "varied": [{"id": f"{name}_{i}", "q": f"twin {i} of {name}", "a": 1} for name in ORIGINALS for i in range(4)]
        + [{"id": "d", "q": "original d, which cannot be varied", "a": 1}],
    }
    for name, lines in rows.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
        card = {
            "name": name,
            "title": name,
            "source": {"kind": "file", "path": f"{name}.jsonl"},
            "id_rule": "column",
            "columns": {"question": "q", "answer": "a", "id": "id"},
            "kind": "integer",
            "samples": 4,
            **({"twin_of": "origs", "original_key": "id", "original_until": "_"} if name == "varied" else {}),
        }
        (folder / f"{name}.yaml").write_text(json.dumps(card))


def by_heart(request: Request) -> Said:
    """Knows the originals, and of each four twins the first."""
    text = request.json["messages"][-1]["content"]
    right = text.startswith(("original", "twin 0"))
    return Said(rf"seed {request.json['seed']}: \boxed{{{1 if right else 2}}}", 9)


def test_score_shows_the_drop_from_originals_to_twins_of_the_same_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_cards(tmp_path)
    monkeypatch.setenv("HARNESS_DATASETS", str(tmp_path))
    with FakeServer(serving(by_heart, "m")) as server:
        harness.run("varied", base_url=server.base_url, out=tmp_path / "run", canary=False)
        (alone,) = harness.score(tmp_path / "run")
        assert alone.twins is None
        harness.run("origs", base_url=server.base_url, out=tmp_path / "run", canary=False)
    scores = {score.benchmark: score for score in harness.score(tmp_path / "run")}
    assert scores["origs"].twins is None
    drop = scores["varied"].twins
    # Three originals with four twins each; the question that could not be varied has neither.
    assert (drop.original, drop.n_originals, drop.n_twins, drop.n_unpaired) == ("origs", 3, 12, 1)
    assert (drop.original_accuracy, drop.twin_accuracy, drop.drop.value) == (1.0, 0.25, 0.75)
    assert drop.drop.sampling.low > 0.4
    assert drop.p_sampling < 0.001
    # The twins of one original are no independent questions.
    assert scores["varied"].n_clusters == 4
    assert "original" not in scores["varied"].breakdowns
    table = next(table for table in harness.report(tmp_path / "run").tables if table.title.startswith("Twins: "))
    assert table.rows[0][1:7] == ("varied [1]", "origs", "3 : 12", "100.0", "25.0", "+75.0")
    assert json.loads((tmp_path / "run/varied/scores.json").read_text())["twins"]["drop"]["value"] == 0.75


def test_a_card_names_its_originals_wholly_or_not_at_all(tmp_path: Path) -> None:
    write_cards(tmp_path)
    path = tmp_path / "varied.yaml"
    card = json.loads(path.read_text())
    for missing, sentence in (("twin_of", "set both `twin_of` and"), ("original_key", "set both `twin_of` and")):
        path.write_text(json.dumps({key: value for key, value in card.items() if key != missing}))
        with pytest.raises(UsageError, match=sentence):
            catalog.load(str(path))
    path.write_text(json.dumps(card | {"original_key": "a", "original_until": None}))
    (tmp_path / "varied.jsonl").write_text('{"id": "x", "q": "?", "a": null}\n')
    with pytest.raises(
        UsageError,
        match=r"varied\.jsonl:1: the column 'a' must contain the id or text of the original question, found null",
    ):
        questions.build(catalog.load(str(path)))
