"""Questions and replies of which a test states only what matters to it, and how many cases a test tries."""

from __future__ import annotations

import datetime
import json
import os
import random
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TypeVar

from reasoning_answers.grading import BareReply
from reasoning_answers.kinds import kind_of
from reasoning_answers.records import AnswerKind, BareQuestion, GradeRules
from reasoning_answers.search import search
from reasoning_answers.verdict import Verdict, conclude, decide

Case = TypeVar("Case")
RULES = GradeRules()
ALL = os.environ.get("HARNESS_TEST_EXAMPLES") == "all"
"""Whether all cases are tried, rather than a quarter of them."""

SEED = os.environ.get("HARNESS_FUZZ_SEED", datetime.datetime.now(datetime.UTC).date().isoformat())
"""The seed of cases that are new every day."""

_SHARE = 4


def examples(default: int) -> int:
    """Number of random inputs: `default` if all are tried, else a quarter; HARNESS_FUZZ_EXAMPLES if that is more."""
    return max(default if ALL else default // _SHARE, int(os.environ.get("HARNESS_FUZZ_EXAMPLES", 0)))


def share_of(cases: Iterable[Case]) -> list[Case]:
    """All cases in their order if all are tried; else a quarter of them."""
    every = [*cases]
    return every if ALL else random.sample(every, -(-len(every) // _SHARE))


def question(
    *references: str, kind: AnswerKind | None = None, rules: GradeRules = RULES, choices: tuple[str, ...] = ()
) -> BareQuestion:
    """A question with these references."""
    return BareQuestion(references=references, kind=kind or kind_of(references[0]), rules=rules, choices=choices)


def answered(text: str | None, *, reasoning: str | None = None, finish_reason: str = "stop") -> BareReply:
    """A reply with this text."""
    return BareReply(text, reasoning, finish_reason, truncated=finish_reason == "length")


def verdict_on(asked: BareQuestion, said: BareReply, *, answer_from_reasoning: bool = False) -> Verdict:
    """The verdict on a reply."""
    searched = search(asked, said, answer_from_reasoning=answer_from_reasoning)
    return conclude(asked, searched, partial(decide, asked))


def pinned_pairs() -> list[tuple[str, str]]:
    """The reference and the answer of each pinned pair whose reply is an answer in a box."""
    lines = (Path(__file__).parent / "verdicts" / "pairs.jsonl").read_text("utf-8").splitlines()
    rows = map(json.loads, lines)
    return [(row["reference"], row["reply"].removeprefix(r"\boxed{").removesuffix("}")) for row in rows]
