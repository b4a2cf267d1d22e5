"""Questions and replies of which a test states only what matters to it, and how many cases a test tries."""

from __future__ import annotations

import datetime
import json
import os
import random
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from reasoning_answers.grading import BareReply
from reasoning_answers.kinds import kind_of
from reasoning_answers.records import AnswerKind, BareQuestion, GradeRules
from reasoning_answers.search import search
from reasoning_answers.verdict import Verdict, conclude, decide

Case = TypeVar("Case")
RULES = GradeRules()
ALL = os.environ.get("HARNESS_TEST_EXAMPLES") == "all"
"""Whether all cases are tried, rather than an eighth of them."""

VERDICTS = sorted((Path(__file__).parent / "verdicts").glob("*.jsonl"))
"""Files of pinned pairs, a set each."""

SEED = os.environ.get("HARNESS_FUZZ_SEED") or f"{datetime.datetime.now(datetime.UTC):%Y%m%d}"
"""The seed of generated cases: the day's, or that of a day before."""

_SHARE = 8


def examples(default: int) -> int:
    """Number of random inputs: `default` if all are tried, else an eighth; HARNESS_FUZZ_EXAMPLES if that is more."""
    return max(default if ALL else default // _SHARE, int(os.environ.get("HARNESS_FUZZ_EXAMPLES", 0)))


def share_of(cases: Iterable[Case]) -> list[Case]:
    """All cases in their order if all are tried; else an eighth of them."""
    every = [*cases]
    return every if ALL else random.Random(SEED).sample(every, -(-len(every) // _SHARE))


def question(
    *references: str, kind: AnswerKind | None = None, rules: GradeRules = RULES, choices: tuple[str, ...] = ()
) -> BareQuestion:
    """A question with these references."""
    return BareQuestion(references=references, kind=kind or kind_of(references[0]), rules=rules, choices=choices)


def answered(text: str, *, truncated: bool = False) -> BareReply:
    """A reply with this text."""
    return BareReply(text, truncated=truncated)


def verdict_on(asked: BareQuestion, said: BareReply) -> Verdict:
    """The verdict on a reply."""
    return conclude(asked, search(asked, said), partial(decide, asked))


class Row(NamedTuple):
    """A pinned pair. says: the verdict on it. options: those of `grade`."""

    reference: str
    reply: str
    says: str
    options: dict[str, Any]


def pinned(path: Path) -> list[Row]:
    """The pinned pairs of a file, without those for which a card states more."""
    return [
        Row(line["reference"], line["reply"], line.get("says", line["verdict"]), line.get("options", {}))
        for line in map(json.loads, path.read_text("utf-8").splitlines())
        if not line.keys() & {"rules", "question", "more"}
    ]


def bare_rows() -> list[Row]:
    """The pinned pairs of all files that are graded without options."""
    return [row for path in VERDICTS for row in pinned(path) if not row.options]


def pinned_pairs() -> list[tuple[str, str]]:
    """The reference and the answer of each pinned pair whose reply is an answer in a box."""
    rows = pinned(VERDICTS[0].with_name("pairs.jsonl"))
    return [(row.reference, row.reply.removeprefix(r"\boxed{").removesuffix("}")) for row in rows]
