"""The judges of a run: what a score records about the judge in force (whether it has finished, what its replies cost),
and the stored replies and rubrics of all judges so far, in `<run>/judge/<model>-<prompt>-<digest>/`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from harness.benchmarks.judge_forms import MAX_SHOWN_PROOF_CHARS, MAX_SHOWN_REPLY_CHARS, RUBRIC, stored_form
from harness.core.errors import StoreError
from harness.core.number_text import Prices, count_noun, describe_usd, in_percent
from harness.core.records import Grade, Key, Question, Sample
from harness.core.sanitize import visible
from harness.grading.second.judge_messages import (
    JudgeRuling,
    is_about,
    prompt_of,
    rule_in,
    shown_answer,
    text_for_judge,
    vote,
)
from harness.grading.verifier import JUDGE_RULE
from harness.runs import Manifest, RunFolder, read_samples
from harness.runs import questions as question_file
from harness.runs.layout import BenchmarkFolder
from harness.runs.missing import n_planned

MAX_NAME_CHARS = 100
"""A judge's name is truncated to this length in a sentence."""


class JudgeCost(msgspec.Struct, frozen=True):
    """The cost of a judge's replies for a benchmark over all sessions, including replies that were later replaced."""

    replies: int = 0
    """Number of replies."""
    requests: int = 0
    """Number of requests made for these replies, including failed requests."""
    n_stated: int = 0
    """Number of replies for which the server reported both token counts. The token counts and cost exclude all other
    replies.
    """
    prompt_tokens: int = 0
    """Total prompt tokens of the `n_stated` replies."""
    completion_tokens: int = 0
    """Total completion tokens of the `n_stated` replies."""
    usd: float | None = None
    """Cost in US dollars at the specified prices; None if no prices were specified, or if no reply reports its token
    counts.
    """

    @classmethod
    def of(cls, replies: Iterable[Sample], prices: Prices | None) -> JudgeCost:
        """The cost of these replies. Requests without a reply are not counted."""
        n = n_requests = n_stated = prompt = completion = cached = 0
        for reply in replies:
            n, n_requests = n + 1, n_requests + reply.attempts
            tokens_in, tokens_out = reply.usage.prompt_tokens, reply.usage.completion_tokens
            if tokens_in is not None and tokens_out is not None:
                n_stated, prompt, completion = n_stated + 1, prompt + tokens_in, completion + tokens_out
                cached += reply.usage.cached_tokens or 0
        is_known = n_stated or not n  # replies of unknown length are not free
        usd = prices.usd(prompt, completion, cached) if prices and is_known else None
        return cls(n, n_requests, n_stated, prompt, completion, usd)

    def add(self, more: JudgeCost) -> JudgeCost:
        """The sum of both costs; without `usd` if it is unknown for either."""
        usd = None if self.usd is None or more.usd is None else self.usd + more.usd
        ours, theirs = msgspec.structs.asdict(self), msgspec.structs.asdict(more)
        return JudgeCost(**{name: ours[name] + theirs[name] for name in ours if name != "usd"}, usd=usd)

    @property
    def text(self) -> str:
        """Requests, tokens, and the cost in dollars if known."""
        requests = count_noun(self.requests, "request")
        if not self.n_stated and self.replies:
            return f"{requests}, tokens unknown (not reported by the server)"
        partly = f" (for the {self.n_stated:,} replies with reported usage)" if self.n_stated < self.replies else ""
        money = "" if self.usd is None or not self.n_stated else f", {describe_usd(self.usd)}"
        tokens = f"{self.prompt_tokens:,} prompt tokens, {self.completion_tokens:,} completion tokens"
        return f"{requests}, {tokens}{partly}{money}"


class JudgeErrors(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about the errors of the judge model behind a score."""

    n_judged: int
    """Number of samples whose verdict comes from the judge."""
    n_samples: int
    """Number of samples covered by the score."""
    n_both: int
    """Number of samples that both the rules and the judge decided."""
    n_differing: int
    """Number of those samples on which the rules and the judge disagree."""
    settings: dict[str, Any] = {}
    """The judge's options by name, excluding API keys. `base_url` lists the addresses that responded. Empty in scores
    from earlier versions.
    """
    key_variable: str | msgspec.UnsetType = msgspec.UNSET
    """Environment variable that contains the judge's API key; absent if none was specified."""

    @property
    def sentence(self) -> str:
        """The warning of a score with these errors."""
        beside = "no sample was decided by both the grader and the judge, so the judge's error rate is unknown"
        if self.n_both:
            share = in_percent(self.n_differing / self.n_both)
            beside = f"it differs from the grader on {self.n_differing:,} of {self.n_both:,} ({share}%)"
        return (
            f"{self.n_judged:,} of {self.n_samples:,} verdicts come from a judge; the intervals do not account for its "
            f"errors: {beside}"
        )


class Judging(msgspec.Struct, frozen=True, kw_only=True):
    """The judge used to score a benchmark, even if it decided no samples."""

    name: str
    """Names of the judge model and its prompt, as in the `grader` field of samples that it decided."""
    settings: dict[str, Any]
    """Options that affect verdicts, by name."""
    ended: bool
    """Whether the judge has processed every answer in its scope."""
    mute: bool = False
    """Whether the judge gave no verdicts at all."""
    cost: JudgeCost | None = None
    """Cost of the judge's replies; None if the score was stored while the judge was still running."""

    def unfinished_warning(self, which: str) -> str:
        """A warning if the judge has not finished or gave no verdicts; otherwise empty. which: what was judged, such as
        "the run".
        """
        name = visible(self.name.removeprefix("judge:"), MAX_NAME_CHARS)
        if not self.ended:
            return (
                f"judging of {which} by {name} is incomplete: the other answers keep the verdicts they had before. "
                "To continue, repeat the `harness score` command"
            )
        if self.mute:
            return (
                f"the judge {name} gave no verdicts at all on {which}, so the verdicts without the judge are kept. "
                "To ask it again, repeat the `harness score` command"
            )
        return ""


# ---- stored replies


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeReply:
    """A judge's reply about the answer of one sample. ruling: None if the reply gives none. judge: model@prompt, as in
    the grades. folder, key: where the reply is stored.
    """

    judge: str
    ruling: JudgeRuling | None
    text: str
    folder: RunFolder
    key: Key


def judges_of(folder: BenchmarkFolder) -> Iterator[tuple[RunFolder, Manifest]]:
    """Yield each judge used for a benchmark: the folder of its replies, and its manifest.

    folder: the benchmark's folder in the run. A damaged judge folder is left out; `harness score` reports the damage.
    """
    for path in sorted((folder.path.parent / "judge").glob("*/manifest.json")):
        judge = RunFolder(path.parent)
        try:
            manifest = Manifest.load(judge)
        except StoreError:
            continue
        if folder.name in manifest.benchmarks:
            yield judge, manifest


def replies_about(folder: BenchmarkFolder, question: Question, sample: Sample, grade: Grade) -> list[JudgeReply]:
    """The stored replies of all judges about the answer of a sample; those of the judge that decided it are last.

    folder: the benchmark's folder in the run. Raises `StoreError`.
    """
    # A judge sees the end of a reply only if the answer cannot be shown, and the whole reply only with some prompts.
    sizes, is_apart = (0, MAX_SHOWN_REPLY_CHARS, MAX_SHOWN_PROOF_CHARS), bool(sample.reasoning)
    texts = [text_for_judge(sample.text, is_apart=is_apart, whole=most) for most in sizes]
    shown = list(filter(None, (grade.extracted and shown_answer(grade.extracted), *texts)))
    by_judge: list[tuple[tuple[bool, str], list[JudgeReply]]] = []
    for judge, manifest in judges_of(folder):
        record, asked_in = manifest.benchmarks[folder.name], judge.benchmark(folder.name)
        ids = _requests_about(asked_in, question, shown)
        prompt = str(record.identity.get("prompt"))
        name = f"{manifest.model}@{prompt}"
        keys = {Key(id_, index) for id_ in ids for index in range(n_planned(id_, record.plan.samples))}
        form = stored_form(prompt, question.rules.judge)
        replies = [
            JudgeReply(
                judge=name,
                ruling=None if form is None else vote(reply, form, question),
                text=reply.text or "",
                folder=judge,
                key=reply.key,
            )
            for reply in (read_samples(asked_in, keys=keys) if keys else ())
        ]
        # A judge with other sampling options has another folder under the same name; the later one comes last.
        by_judge.append(((f"+judge:{name}" in grade.grader, manifest.created), replies))
    by_judge.sort(key=lambda item: item[0])
    return [reply for _, replies in by_judge for reply in replies]


def _requests_about(asked_in: BenchmarkFolder, question: Question, shown: Sequence[str]) -> list[str]:
    """The ids of a judge's requests about one answer to a question.

    asked_in: the benchmark's folder within the judge's folder. shown: texts that a request may contain (the answer
    itself, or the reply); the first text that any request contains is used.
    """
    requests = {
        case.question_id: case.messages[-1].content
        for case in question_file.iterate(asked_in)
        if case.metadata.get("question_id") == question.question_id and case.messages
    }
    for answer in shown:
        if ids := [request_id for request_id, text in requests.items() if is_about(text, answer)]:
            return ids
    return []


def rubric_of(folder: BenchmarkFolder, grades: Iterable[Grade]) -> str:
    """The rubric that a judge used for some of `grades`, as sent to the judge; empty if there is none, if there are
    several, or if the judge's replies are gone.

    folder: the benchmark's folder in the run. The rubric is part of every prompt of the judge; the first prompt is
    used.
    """
    graders = {grade.grader for grade in grades if grade.rule == JUDGE_RULE}
    prompts = set(map(prompt_of, graders))
    prompt = prompts.pop() if len(prompts) == 1 else ""
    if not prompt.startswith(RUBRIC):
        return ""
    for judge, manifest in judges_of(folder):
        if manifest.benchmarks[folder.name].identity.get("prompt") == prompt:
            with contextlib.suppress(StoreError):  # `harness score` reports the damage.
                first = next(iter(question_file.read(judge.benchmark(folder.name))), None)
                if first is not None and first.messages:
                    return rule_in(first.messages[-1].content)
    return ""
