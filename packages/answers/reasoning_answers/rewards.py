"""Rewards for reinforcement learning: the grader used for scores, with the signatures of TRL, open-r1 and verl.

    GRPOTrainer(reward_funcs=[accuracy_reward, format_reward], …)          # columns: prompt, solution
    custom_reward_function.path=…/reasoning_answers/rewards.py             # verl: compute_score

Each function takes `completions`, which are strings or lists with one message each, and the columns of the data as
keyword arguments; it returns a number for each completion. Answers are graded in this process, without threads, signals
or a deadline; each comparison is limited in steps (`bounds`). `graded_by` replaces this: `harness.rewards` grades with
worker processes that have a deadline and a memory limit.

Names and formulas are those of open-r1 (github.com/huggingface/open-r1, src/open_r1/rewards.py). A reference that
cannot be read gives None, which TRL leaves out of the advantage (open-r1 gives 1), and the first one also gives a
warning. Undecided answers count as wrong, as in a score.

A reference may be an answer or a worked solution that states one (`#### 72`, `<answer>`, a box, "the answer is"); a
numpy or torch value or array; a list with one element; or verl's mapping with `ground_truth`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any, Literal

from reasoning_answers import codec
from reasoning_answers.find.reference import stated_in
from reasoning_answers.find.values import Extraction
from reasoning_answers.records import BareQuestion, VerdictName
from reasoning_answers.references import read_reference
from reasoning_answers.search import find
from reasoning_answers.text import quoted
from reasoning_answers.verdict import conclude, decide, simple_outcome

Completion = str | Sequence[Mapping[str, Any]]
"""A string, or the messages of a conversation, of which the last one is graded."""

_OPENS, _TURNS, _ENDS = "<think>\n", "\n</think>\n<answer>\n", "\n</answer>"
"""Tags before the reasoning, between reasoning and answer, and after the answer."""

LogExtra = Callable[[str, list[str]], None]
"""Adds a column to the completions that a trainer logs."""

_UNREAD = "[unparseable]"
"""Value in a column, as in TRL, for a reference that cannot be read and a text without an answer."""

_FORMER = (
    "tag_count_reward",
    "reasoning_steps_reward",
    "get_cosine_scaled_reward",
    "get_repetition_penalty_reward",
)

_log = logging.getLogger(__name__)
_has_warned = False

_REWARD = {"correct": 1.0, "wrong": 0.0, "no_answer": 0.0, "undecided": 0.0, "unreadable": None}
"""Verdict → its reward; None if the reference cannot be read."""

Batch = Sequence[tuple[BareQuestion, Extraction]]
"""Questions, each with the answer found in a response; equal references are the same question."""


def outcomes_in_process(batch: Batch) -> list[VerdictName]:
    """Return the outcome of each answer, decided in this process."""

    @cache
    def outcome(index: int, extraction: Extraction) -> VerdictName:
        question = questions[index]
        return conclude(question, extraction, lambda answer: decide(question, answer)).outcome

    questions = {id(question): question for question, _ in batch}
    return [outcome(id(question), extraction) for question, extraction in batch]


_outcomes: ContextVar[Callable[[Batch], list[VerdictName]]] = ContextVar("_outcomes", default=outcomes_in_process)


@contextlib.contextmanager
def graded_by(outcomes: Callable[[Batch], list[VerdictName]]) -> Iterator[None]:
    """A `with` block in which `outcomes` decides the answers of each batch that need a comparison."""
    token = _outcomes.set(outcomes)
    try:
        yield
    finally:
        _outcomes.reset(token)


def _rewards(texts: Sequence[str], references: Sequence[Any], log_extra: LogExtra | None = None) -> list[float | None]:
    """Return the reward for each text: 1 if correct, 0 for any other verdict, None if the reference cannot be read."""
    shown: dict[str, list[str]] = {"solution": [], "gold_parsed": [], "answer_parsed": []}
    questions: dict[str, BareQuestion | None] = {}  # by the key of the reference
    known: list[VerdictName | Literal["unreadable"] | None] = []  # None: needs a comparison
    batch: list[tuple[BareQuestion, Extraction]] = []
    for reference, text in zip(references, texts, strict=True):
        if hasattr(reference, "tolist"):  # numpy or torch, which shorten long or precise values when printing
            reference = reference.tolist()
        key = _key(reference)
        if key not in questions:
            questions[key] = _question(reference)
        question = questions[key]
        extraction = None if question is None else find(question, text)
        shown["solution"].append(reference if isinstance(reference, str) else key)
        shown["gold_parsed"].append(_UNREAD if question is None else question.references[0])
        shown["answer_parsed"].append(_UNREAD if extraction is None else extraction.answer)
        if question is None:
            known.append("unreadable")
        elif extraction is None:
            known.append("no_answer")
        else:
            known.append(simple_outcome(question, extraction))
            batch += [(question, extraction)] if known[-1] is None else []
    decided = iter(_outcomes.get()(batch))
    if log_extra is not None:
        for name, column in shown.items():
            log_extra(name, column)
    return [_REWARD[outcome or next(decided)] for outcome in known]


def accuracy_reward(
    completions: Sequence[Completion],
    solution: Sequence[Any],
    log_extra: LogExtra | None = None,
    **_columns: Any,
) -> list[float | None]:
    """Return 1 for each answer that matches its reference, otherwise 0; None if the reference cannot be read.

    log_extra: called with the names and values of the columns that TRL's own `accuracy_reward` logs.
    """
    return _rewards(_texts(completions), _check_length(solution, completions), log_extra)


def format_reward(completions: Sequence[Completion], **_columns: Any) -> list[float]:
    """Return 1 for texts of the form `<think>`, reasoning, `</think>`, `<answer>`, answer, `</answer>`; otherwise 0.

    Each tag is on its own line, and nothing follows the last one.
    """
    return [float(_is_formatted(text)) for text in _texts(completions)]


def len_reward(completions: Sequence[Completion], solution: Sequence[Any], **_columns: Any) -> list[float | None]:
    """Return rewards that favor short answers: ½ − (length − shortest) / (longest − shortest) over the batch.

    Lengths are in characters. A wrong answer gets at most 0. If all have the same length, each gets 0. Source: Kimi
    k1.5 (arXiv:2501.12599), section 2.3.3.
    """
    texts, solution = _texts(completions), _check_length(solution, completions)
    lengths = [len(text) for text in texts]
    shortest, longest = min(lengths, default=0), max(lengths, default=0)
    if shortest == longest:
        return [0.0] * len(texts)
    rewards: list[float | None] = []
    for length, right in zip(lengths, accuracy_reward(completions, solution), strict=True):
        reward = 0.5 - (length - shortest) / (longest - shortest)
        if not right:
            reward = min(0.0, reward)
        rewards.append(None if right is None else reward)
    return rewards


def compute_score(
    data_source: str,  # noqa: ARG001 - verl passes it by name
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,  # noqa: ARG001
    **_: Any,
) -> float:
    """Return 1 if the response is correct, otherwise 0; the signature is verl's for one response.

    `compute_scores` grades whole batches and is faster.
    """
    return _rewards(_texts([solution_str]), [ground_truth])[0] or 0.0


def compute_scores(
    data_sources: Sequence[str],  # noqa: ARG001
    solution_strs: Sequence[str],
    ground_truths: Sequence[Any],
    extra_infos: Sequence[Mapping[str, Any]] | None = None,  # noqa: ARG001
    **_: Any,
) -> list[float]:
    """Return 1 for each correct response, otherwise 0; the signature is that of verl's batch reward manager.

    verl calls it with `reward_model.reward_manager=batch`.
    """
    return [reward or 0.0 for reward in _rewards(_texts(solution_strs), list(ground_truths))]


def _is_formatted(text: str) -> bool:
    # Not a regex: one with two free parts takes quadratic time if its middle is repeated without an end.
    room = len(text) - len(_ENDS)
    return text.startswith(_OPENS) and text.endswith(_ENDS) and text.find(_TURNS, len(_OPENS), room) >= 0


def _texts(completions: Sequence[Completion]) -> list[str]:
    """The text of each completion: a string itself, or the text of a conversation's last message; otherwise ""."""
    texts = []
    for completion in completions:
        message = completion[-1] if completion and isinstance(completion, list | tuple) else completion
        content = message.get("content") if isinstance(message, Mapping) else message
        if isinstance(content, list):  # parts, as used with vision models
            parts = [part.get("text") for part in content if isinstance(part, Mapping)]
            content = "".join(part for part in parts if isinstance(part, str))
        texts.append(content if isinstance(content, str) else "")
    return texts


def _check_length(solution: Sequence[Any], completions: Sequence[Completion]) -> Sequence[Any]:
    """Return `solution`. Raises `ValueError` unless it is a list with one entry for each completion."""
    if isinstance(solution, str) or len(solution) != len(completions):
        given = "a string" if isinstance(solution, str) else str(len(solution))
        raise ValueError(
            f"solution: expected a list with {len(completions)} items, one for each completion; found {given}"
        )
    return solution


def _key(reference: Any) -> str:
    """Return a string that differs for different references; "" for an integer with more digits than Python prints,
    which is not a reference.
    """
    try:
        return repr(reference)
    except ValueError:
        return ""


def _question(reference: Any) -> BareQuestion | None:
    """Return the question with this reference; None if the reference cannot be read, with a warning the first time."""
    global _has_warned
    try:
        accepted, kind = read_reference(_answer_in(reference))
        return BareQuestion(references=accepted, kind=kind)
    except ValueError as error:
        if not _has_warned:
            _log.warning(
                "a reference cannot be read, so it yields no reward: the reference answer %s (shown only once)", error
            )
        _has_warned = True
        return None


def _answer_in(reference: Any) -> Any:
    """The answer in a reference from a trainer. Raises `ValueError` for a worked solution that states none."""
    if isinstance(reference, Mapping) and "ground_truth" in reference:
        return _answer_in(reference["ground_truth"])
    if hasattr(reference, "tolist"):
        return _answer_in(reference.tolist())
    if isinstance(reference, str) and reference.startswith('["'):  # a list as JSON, as in Skywork's data
        with contextlib.suppress(ValueError):
            reference = codec.decode(reference)
    if isinstance(reference, list | tuple):
        return _answer_in(reference[0]) if len(reference) == 1 else [*map(_answer_in, reference)]
    if isinstance(reference, Decimal | Fraction):
        return str(reference)
    if not isinstance(reference, str):
        return reference
    stated = stated_in(reference)
    if stated is None:
        raise ValueError(f"does not state an answer: {quoted(reference)}")
    return stated


def __getattr__(name: str) -> Any:
    if name in _FORMER:  # of another kind, `from … import` would replace the sentence
        raise ImportError(f"the reward `{name}` no longer exists; import it from `open_r1.rewards`, which defines it")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
