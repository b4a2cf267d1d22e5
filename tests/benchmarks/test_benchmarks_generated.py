"""Questions of the reasoning-gym package: seeded, judged by its own verifier. Skipped without the package."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.benchmarks import catalog, questions
from harness.benchmarks.sources import gym
from harness.commands import card_data
from harness.core.errors import UsageError
from harness.core.records import Sample
from tests.grading import given as made
from tests.runs import recorded


def test_without_the_package_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    assert card_data.status(catalog.load("gym:basic_arithmetic")) == "generated"
    with pytest.raises(UsageError, match=r"reasoning-gym: .* install .*reasoning-gym"):
        questions.build(catalog.load("gym:basic_arithmetic"))


@pytest.mark.slow
def test_a_task_is_a_benchmark_and_its_seed_makes_its_questions() -> None:
    pytest.importorskip("reasoning_gym")
    built = questions.build(gym.card_of("basic_arithmetic", size=20, seed=3))
    assert built.n_all == 20
    assert built.questions[0].question_id == "basic_arithmetic-3-0"
    assert built.dataset_digest == questions.build(gym.card_of("basic_arithmetic", size=20, seed=3)).dataset_digest
    assert built.dataset_digest != questions.build(gym.card_of("basic_arithmetic", size=20, seed=4)).dataset_digest


@pytest.mark.slow
def test_the_tasks_own_verifier_decides_from_the_stored_question_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("reasoning_gym")
    monkeypatch.setenv("HOME", str(tmp_path))  # a worker may make no folder there
    from harness.core import codec
    from harness.core.records import Question
    from harness.grading.processes import pool

    built = questions.build(gym.card_of("countdown", size=3, seed=1))
    stored = {q.question_id: codec.decode(codec.encode(q), Question) for q in built.questions}

    def sample(question: Question, text: str, index: int) -> Sample:
        return recorded.sample(question.question_id, index, text, benchmark=question.benchmark)

    given = [
        s
        for q in stored.values()
        for s in (
            sample(q, f"\\boxed{{{q.references[0]}}}", 0),
            sample(q, "\\boxed{1 + 1}", 1),
        )
    ]
    grades = {g.key: g.verdict for g in pool.grade_all(stored, given, workers=1, deadline_s=60.0)}
    assert all(verdict == ("correct" if key.sample_index == 0 else "wrong") for key, verdict in grades.items())
    assert gym.verify(built.questions[0].references[0], built.questions[0])


def test_a_part_of_the_points_is_not_right(monkeypatch: pytest.MonkeyPatch) -> None:
    library = SimpleNamespace(get_score_answer_fn=lambda _task: lambda answer, _entry: float(answer))
    monkeypatch.setattr(gym, "_library", lambda: library)
    asked = made.question("1")
    asked.metadata.update(task="t", entry={})
    assert [gym.verify(answer, asked) for answer in ("0.5", "0.99", "1")] == [False, False, True]


def test_an_unknown_task_or_option_is_one_sentence() -> None:
    pytest.importorskip("reasoning_gym")
    with pytest.raises(UsageError, match=r"no task 'basic_arithmetics'\. Did you mean basic_arithmetic"):
        questions.build(catalog.load("gym:basic_arithmetics"))
    with pytest.raises(UsageError, match="rejects the options"):
        questions.build(gym.card_of("basic_arithmetic", options={"min_term": 3}))
    with pytest.raises(UsageError, match=r"source\.reasoning_gym\.task"):
        catalog.load("gym:../evil")
