"""Pins of `harness score --judge` and `harness.score(judge=…)`: the judge's bodies, its replies on disk, the scores.

The issue of these pins changes the bodies: they lack the neutral sampling values (`top_k`, `min_p`,
`repetition_penalty`) that a run sends. Then, and only for that, the golden files are written anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.faults.server import FaultServer
from tests.pins import stored
from tests.pins.server import judging
from tests.pins.stage import Scene, Stage, name_of, plain, without


def both_doors(
    stage: Stage,
    source: str,
    words: list[str],
    keywords: dict[str, Any],
    of_file: dict[str, str],
    code: int = 0,
) -> FaultServer:
    """The same judging by the command and, in another folder, by Python. code: the command's exit code."""
    import harness

    judge = stage.server("judge", judging())
    more = [word for name, value in of_file.items() for word in (f"--{name.replace('_', '-')}", value)]
    words = ["score", source, "--judge", "pinned", "--judge-base-url", judge.base_url, *words, *more, "--workers", "1"]
    printed = stage.command(*words, "--json")
    assert printed.code == code, printed.err
    posted = stage.requests(judge)
    since = len(judge.requests)
    copy = stage.folder / "by-python"
    copy.mkdir()
    if of_file:
        (copy / source).write_bytes((stage.folder / source).read_bytes())
    else:
        stored.copy(source, copy, scored=True)
    model = harness.Judge(model="pinned", base_url=[judge.base_url], **keywords)
    scores = stage.python("score", f"by-python/{source}", judge=model, workers=1, **of_file)
    stage.alike(without(printed.json, "run"), [plain(score) for score in scores])
    stage.alike(posted, stage.requests(judge, since, record=False))
    return judge


def what_the_rules_left(stage: Stage) -> None:
    """The default: only what the rules left undecided is shown."""
    stored.copy("first", stage.folder, scored=True)
    judge = both_doors(stage, "first", [], {}, {})
    stage.file("first/sums/grades.jsonl")
    stage.tree("first")
    since = len(judge.requests)
    stage.command("score", "first", "--judge", "pinned", "--judge-base-url", judge.base_url, "--workers", "1")
    assert not judge.requests[since:]  # its replies are stored: nothing is asked twice


def all_with_votes(stage: Stage) -> None:
    """Every option of the judge."""
    stored.copy("first", stage.folder, scored=True)
    words = ["--judge-scope", "all", "--judge-votes", "3", "--judge-override", "--judge-prompt", "limo"]
    words += ["--judge-temperature", "0.5", "--judge-max-tokens", "99", "--judge-concurrency", "2"]
    keywords = {
        "scope": "all", "votes": 3, "override": True, "prompt": "limo", "temperature": 0.5, "max_tokens": 99,
        "concurrency": 2,
    }  # fmt: skip
    # The toy judge states a verdict in the form of the other prompt, so none of its replies has one.
    both_doors(stage, "first", words, keywords, {}, code=1)
    stage.file("first/sums/grades.jsonl")


def called_wrong(stage: Stage) -> None:
    """What the rules called wrong is shown as well."""
    stored.copy("second", stage.folder, scored=True)
    both_doors(stage, "second", ["--judge-scope", "wrong"], {"scope": "wrong"}, {})


def each_engine(stage: Stage) -> None:
    """A judge that an engine serves, which fills the fields that a request leaves open."""
    for engine in ("vllm", "sglang", "llama.cpp"):
        copy = stage.folder / engine
        copy.mkdir()
        run = f"{engine}/{stored.copy('first', copy, scored=True)}"
        judge = stage.server(engine, judging(engine))
        stage.command("score", run, "--judge", "pinned", "--judge-base-url", judge.base_url, "--workers", "1", "--json")
        stage.requests(judge)


def a_file_of_outputs(stage: Stage) -> None:
    """Outputs of another tool are judged as a run's samples are."""
    rows = [
        {
            "question": "why?",
            "answer": PROSE,
            "gen": [r"\boxed{\text{what comes after light}}", r"\boxed{\text{they burn sugar}}"],
        },
        {"question": "2+2", "answer": "4", "gen": [r"\boxed{4}", r"\boxed{5}"]},
    ]
    (stage.folder / "theirs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    both_doors(stage, "theirs.jsonl", [], {}, {"response_key": "gen", "answer_key": "answer"})
    stage.tree(".")


def audited_by_a_person(stage: Stage) -> None:
    """Samples are written for a person, who finds each right; the score gets the accuracy that follows."""
    stored.copy("first", stage.folder, scored=True)
    stage.command("audit", "first", show_errors=True)
    stage.command("audit", "first", "--samples", "6", "--out", "todo.jsonl")
    stage.file("todo.jsonl")
    rows = [json.loads(line) for line in (stage.folder / "todo.jsonl").read_text("utf-8").splitlines()]
    lines = [json.dumps({**row, "verdict": "correct"}) + "\n" for row in rows]
    (stage.folder / "said.jsonl").write_text("".join(lines), "utf-8")
    stage.python("audit", "first", samples=3)
    stage.command("audit", "first", "--samples", "6", "--verdicts", "said.jsonl", "--who", "Ann")
    stage.file("first/sums/scores.json")
    stage.command("audit", "first", "--benchmark", "demo", "--out", "todo.jsonl", show_errors=True)


PROSE = "the process by which green plants turn light into sugar"
"""A reference that no rule can compare with anything but itself."""


SCENES: tuple[Scene, ...] = (
    what_the_rules_left, all_with_votes, called_wrong, each_engine, a_file_of_outputs, audited_by_a_person
)  # fmt: skip


@pytest.mark.parametrize("scene", SCENES, ids=name_of)
def test_pinned(scene: Scene, hold: Callable[[Scene], None]) -> None:
    hold(scene)
