"""Questions that are made from a seed: by the reasoning-gym package, judged by its own verifier (skipped without the
package), and prompts of random words, which differ from the beginning on and are graded by the code that each hides.

For: harness.benchmarks.sources.chooser.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import harness
from harness.benchmarks import catalog, questions
from harness.benchmarks.card import RandomSource
from harness.benchmarks.sources import gym
from harness.benchmarks.sources.chooser import random_prompts
from harness.commands import card_data
from harness.core.errors import UsageError
from harness.core.records import Sample
from harness.testing import FakeServer, Request, Said, serving
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


def test_prompts_are_seeded_and_share_no_beginning() -> None:
    rows = [
        [row.value for row in random_prompts(RandomSource(kind="random", words=100, size=n, seed=1)).rows]
        for n in (20, 50)
    ]
    assert rows[0] == rows[1][:20], "a larger size changes no prompt"
    assert len({" ".join(row["question"].split()[:10]) for row in rows[1]}) == 50
    for row in rows[1]:
        assert re.findall(r"\(the code is (\d{7})\)", row["question"]) == row["answer"]
        assert 90 <= len(row["question"].split()) <= 110
    other = next(iter(random_prompts(RandomSource(kind="random", words=100, size=1, seed=2)).rows)).value
    assert other["question"] != rows[0][0]["question"]
    assert random_prompts(RandomSource(kind="random", words=1, size=1)).rows, "the shortest has its code, too"


def test_a_reply_of_a_fixed_length_is_right_if_it_names_the_code(tmp_path: Path) -> None:
    def reply(request: Request) -> Said:
        prompt = request.json["messages"][-1]["content"]
        code = re.findall(r"code is (\d+)", prompt)[0]
        return Said(f"{code} is the code." if len(seen) % 2 else "time year", 12, finish="length")

    seen = list[int]()
    with FakeServer(serving(lambda request: (seen.append(1), reply(request))[1])) as server:
        made = harness.run(
            "random_1k", limit=4, base_url=server.base_url, out=tmp_path / "r", canary=False, concurrency=1
        )
    assert made.complete
    scored = harness.score(tmp_path / "r")["random_1k"]
    assert scored.accuracy is not None
    assert scored.accuracy.value == 0.5
