"""Answers of language models: found in a reply, compared with a reference, and explained.

    verdict = reasoning_answers.grade("1/2", r"so \\boxed{0.5}")
    GRPOTrainer(reward_funcs=[reasoning_answers.accuracy_reward], …)

    reply ─ search ─► Extraction ─ decide ─► Verdicts on texts ─ conclude ─► Verdict

    grading      the functions below, for one reply
    grammar      parses an answer into a tree
    find         where the answer is in a reply: by patterns, in linear time, without parsing it
    compare      whether two answers are the same, and by which rule
    search       finds the answer to a question in a reply: `find` with its reasoning, calls and other boxes
    verdict      puts search and compare together
    steps        a verdict in words
    rewards      reward functions with the signatures of TRL, open-r1 and verl
    host         the parts of a grading, for a program with its own records and processes

Guarantees: no text is executed, whether of a reply, a reference or a schema. Searching takes time linear in the text.
The limits of a comparison are in `bounds`. Not covered: a deadline in seconds, which needs a process that can be
killed. Each name is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reasoning_answers.find.values import Extraction
    from reasoning_answers.grading import equal, explain, extract, grade, vote
    from reasoning_answers.kinds import kind_of
    from reasoning_answers.records import GradeRules as Rules
    from reasoning_answers.rewards import accuracy_reward, compute_score, compute_scores, format_reward, len_reward
    from reasoning_answers.verdict import Verdict

__version__ = "0.1.0"
__all__ = [
    "Extraction",
    "Rules",
    "Verdict",
    "accuracy_reward",
    "compute_score",
    "compute_scores",
    "equal",
    "explain",
    "extract",
    "format_reward",
    "grade",
    "kind_of",
    "len_reward",
    "vote",
]

_HOMES = {
    "Extraction": "find.values",
    "Rules": "records",
    "Verdict": "verdict",
    "kind_of": "kinds",
    **dict.fromkeys(("equal", "explain", "extract", "grade", "vote"), "grading"),
}
"""Name → its module; `rewards` has the others."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_HOMES.get(name, 'rewards')}")
    return getattr(module, "GradeRules" if name == "Rules" else name)


def __dir__() -> list[str]:
    return sorted(__all__)
