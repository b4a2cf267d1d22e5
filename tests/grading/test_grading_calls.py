"""Function calls as answers: graded in a process with a deadline, and beside the leaderboard's own checker.

For: reasoning_answers.calls, reasoning_answers.compare.calls.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.benchmarks import catalog, questions
from harness.benchmarks.card import UrlSource
from harness.benchmarks.sources import web
from harness.core.errors import UsageError
from harness.grading.grades import sample_of
from harness.grading.processes.pool import Pool, question_on
from reasoning_answers.calls import (
    DecodedCall,
    answer_of,
    calls_in,
    examples_of,
    read_calls,
    read_reference,
    read_tools,
)
from reasoning_answers.compare.calls import fault_of
from reasoning_answers.host import search
from tests.conftest import SHARED_DATA


@pytest.mark.parametrize(("pattern", "outcome"), [("a$", "correct"), ("^b", "wrong"), ("(a+)+$", "undecided")])
def test_a_strangers_pattern_ends_with_the_deadline(pattern: str, outcome: str) -> None:
    tools = [{"name": "f", "parameters": {"properties": {"a": {"pattern": pattern}, "b": {"pattern": "b"}}}}]
    calls = [{"name": "f", "arguments": {"a": "a" * 40 + ("!" if outcome == "undecided" else ""), "b": "b"}}]
    assert harness.grade("schema", calls, kind="calls", tools=tools, deadline=1).outcome == outcome
    as_text = harness.grade("schema", json.dumps(calls), kind="calls", tools=json.dumps(tools), deadline=1)
    assert as_text.outcome == outcome


def test_a_schema_that_takes_forever_costs_one_deadline_a_run() -> None:
    endless = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(a+)+$"}}}
    tools = read_tools([{"name": "f", "parameters": endless}, {"name": "g"}])
    answers = ["a" * 40 + "!" * n for n in range(1, 9)]
    references = {answers[3]: {"calls": [{"f": {"a": [answers[3]]}}]}, answers[4]: "some", answers[5]: "none"}
    started = list[int]()

    def start(make: Callable[[], Any]) -> Any:
        started.append(1)
        return make()

    with Pool(1, 2.0, start=start) as pool:
        pending = [
            pool.ask_about(question, sample, search(question, sample), "rules")
            for number, answer in enumerate(answers)
            for question in [question_on(references.get(answer, "schema"), "calls", tools=tools, name=str(number))]
            for sample in [
                sample_of(
                    "", read_calls([{"name": "f", "arguments": {"a": answer}}, {"name": "g"}][: 1 + (number > 6)])
                )
            ]
        ]
        verdicts = [each.verdict() for each in pending]
    assert [verdict.rule for verdict in verdicts] == [
        *["unreadable schema"] * 3, "calls", "calls", "a call", "unreadable schema", "unreadable schema",
    ]  # fmt: skip
    assert all("unreadable_schema" in (verdict.call_signs or ()) for verdict in verdicts)
    assert len(started) == 2


def test_a_mistake_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="at least one call"):
        harness.grade({"calls": []}, "[]", kind="calls")


@pytest.fixture
def package() -> str:
    """The unpacked wheel of bfcl-eval, which HARNESS_BFCL names (docs/testing.md)."""
    if (package := os.environ.get("HARNESS_BFCL")) is None:
        pytest.skip("HARNESS_BFCL names no package of the leaderboard")
    return package


@pytest.mark.parametrize("name", [name for name in catalog.names() if name.startswith("bfcl_")])
def test_a_card_reads_the_leaderboards_files_and_its_answers_are_right(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path))
    card = catalog.load(name)
    assert isinstance(card.source, UrlSource)
    for source in (card.source, *card.source.further):
        (kept := web.cached_path(source)).parent.mkdir(parents=True)
        shutil.copy(Path(package) / "bfcl_eval" / "data" / source.url.partition("/data/")[2], kept)
    asked = questions.build(card)
    assert (asked.n_all, asked.notes) == (card.questions, ())
    wrong = 0
    for question in asked.questions:
        right, other = (read_calls(text or "[]") for text in examples_of(question.references[0]))
        faults = [
            fault_of(calls_in(answer_of(calls)), read_reference(question.references[0]), question.tools or ())
            for calls in (right, other)
        ]
        wrong += faults[0] is not None
        assert faults[1] is not None, question.question_id
    # Values that the leaderboard's own checker refuses, too.
    assert wrong == {"bfcl_live": 5, "bfcl_parallel_multiple": 2}.get(name, 0)
    if not card.source.further[1:]:
        file = Path(package) / "bfcl_eval" / "data" / card.source.url.rpartition("/")[2]
        assert questions.build(card.with_data(str(file))).rows_digest == asked.rows_digest


def test_verdicts_are_those_of_the_leaderboards_own_checker(package: str) -> None:
    oracle = SHARED_DATA.parent / "calls" / "oracle.py"
    if not oracle.exists():
        pytest.skip("there is no ../shared/calls")
    data = Path(package) / "bfcl_eval" / "data"
    asked = subprocess.run([sys.executable, oracle, package], stdout=subprocess.PIPE, check=True, timeout=300)
    cases = [json.loads(line) for line in asked.stdout.splitlines() if line.startswith(b'{"category"')]
    tools, truths = {}, {}
    for category in {case["category"] for case in cases}:
        for line in (data / f"BFCL_v4_{category}.json").read_text("utf-8").splitlines():
            tools[json.loads(line)["id"]] = read_tools(json.loads(line)["function"])
        for line in (data / "possible_answer" / f"BFCL_v4_{category}.json").read_text("utf-8").splitlines():
            truth = {"calls": json.loads(line)["ground_truth"], "any_order": "parallel" in category}
            truths[json.loads(line)["id"]] = read_reference(truth)
    differing = [
        case
        for case in cases
        for calls in [[DecodedCall(each["name"], each["arguments"]) for each in case["calls"]]]
        if (fault_of(calls, truths[case["id"]], tools[case["id"]]) is None) != case["valid"]
    ]
    assert len(cases) > 28_000
    assert differing == []
