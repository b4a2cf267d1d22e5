"""The functions that the package offers: grade, explain, extract, equal, vote, and rewards, in this process.

For: reasoning_answers, reasoning_answers.grading, reasoning_answers.host, reasoning_answers.rewards,
reasoning_answers.records, reasoning_answers.references.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest
from asked import VERDICTS, pinned

import reasoning_answers
from reasoning_answers import (
    Rules,
    accuracy_reward,
    equal,
    explain,
    extract,
    grade,
    host,
    kind_of,
    rewards,
    vote,
)

README = Path(__file__).resolve().parents[1] / "README.md"
_OF_RULES = ("relative_tolerance", "absolute_tolerance", "round_to_reference")


@pytest.mark.slow
@pytest.mark.parametrize("path", VERDICTS, ids=lambda path: path.stem)
def test_the_grader_says_of_each_pair_what_is_pinned(path: Path) -> None:
    changed = []
    for row in pinned(path):
        rules = Rules(**{name: row.options[name] for name in _OF_RULES if name in row.options})
        others = {name: value for name, value in row.options.items() if name not in _OF_RULES}
        outcome = grade(row.reference, row.reply, rules=rules, **others).outcome
        if outcome != row.says:
            changed.append(f"{row.reference} {row.reply[:80]}: {outcome}")
    assert changed == []


def test_a_verdict_explains_itself() -> None:
    verdict = grade("1/2", r"so \boxed{0.5}")
    assert (verdict.outcome, bool(verdict), verdict.extracted, verdict.span) == ("correct", True, "0.5", (10, 13))
    assert verdict.steps == explain("1/2", r"so \boxed{0.5}")
    assert verdict.steps[-1] == "correct"


def test_options_of_a_choice_and_of_rules() -> None:
    assert grade("B", r"\boxed{blue}", kind="choice", choices=("red", "blue")).outcome == "correct"
    assert grade("3.14159", r"\boxed{3.15}", rules=Rules(relative_tolerance=0.01)).outcome == "correct"


@pytest.mark.parametrize("reference", ["", None, True, float("nan"), []])
def test_a_reference_that_cannot_be_read_raises(reference: object) -> None:
    with pytest.raises(ValueError, match="the reference answer"):
        grade(reference, "1")


def test_rules_that_name_another_grader_are_refused() -> None:
    with pytest.raises(ValueError, match="which this package does not call"):
        grade("1", "1", rules=Rules(grader="mine:is_right"))


def test_answers_without_replies() -> None:
    assert (equal("1/2", "0.5"), equal("1/2", "0.6"), equal("a", "it depends on a and b")) == (True, False, False)
    assert (kind_of("7"), kind_of("x+1"), kind_of("1, 2")) == ("integer", "expression", "multiple")
    found = extract(r"so \boxed{x+1}.")
    assert found is not None
    assert (found.answer, found.start, found.end, found.method) == ("x+1", 10, 13, "box")
    assert extract("<think>never ends") is None


def test_the_vote_is_for_equal_answers() -> None:
    verdicts = [grade("1/2", reply) for reply in (r"\boxed{2}", r"\boxed{0.5}", "no", r"\boxed{\frac{2}{4}}")]
    winner = vote(verdicts)
    assert winner is verdicts[1]
    assert vote([grade("1/2", "")]) is None


def test_rewards_are_given_in_this_process_and_thread() -> None:
    before = threading.active_count()
    assert accuracy_reward([r"\boxed{2}", r"\boxed{3}", "2"], solution=["2", "2", ""]) == [1.0, 0.0, None]
    assert threading.active_count() == before


def test_a_caller_may_decide_the_answers_of_a_batch() -> None:
    asked = []
    with rewards.graded_by(lambda batch: [*map(asked.append, batch), *["correct"] * len(batch)][len(batch) :]):
        assert rewards.accuracy_reward(["x", "", "2", "y"], ["2", "2", "2", "2"]) == [1.0, 0.0, 1.0, 1.0]
    # Only those that need a comparison.
    assert [extraction.answer for _, extraction in asked] == ["x", "y"]
    assert asked[0][0] is asked[1][0]
    assert rewards.accuracy_reward(["x"], ["2"]) == [0.0]


def test_the_example_of_the_readme_prints_what_it_says() -> None:
    code, printed = re.findall(r"```(?:python|text)\n(.*?)```", README.read_text("utf-8"), re.DOTALL)[:2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == printed


def test_the_package_alone_loads_nothing_that_it_does_not_need() -> None:
    code = "import reasoning_answers, sys; reasoning_answers.grade('1/2', 'x'); print(*sys.modules)"
    names = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert {"harness", "sympy", "jsonschema", "numpy", "asyncio"}.isdisjoint(names)


@pytest.mark.parametrize("module", [reasoning_answers, host], ids=lambda module: str(module.__name__))
def test_each_name_is_there(module: ModuleType) -> None:
    assert {name for name in module.__all__ if getattr(module, name) is None} == set()
    assert dir(module) == sorted(module.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'verify'"):
        module.verify  # noqa: B018
    with pytest.raises(AttributeError, match="a verdict has no 'verdict'; its fields are outcome, rule, extracted"):
        grade("1", "1").verdict  # noqa: B018
